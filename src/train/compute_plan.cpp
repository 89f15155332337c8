#include "train/compute_plan.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/cpu/Utils.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "core/error.hpp"
#include "data/batch.hpp"
#if SSD_WITH_CUDA
#include <c10/cuda/CUDAStream.h>

#include "comm/nccl_gradient_communicator.hpp"
#endif

namespace ssd {
namespace {

// Mean and deviation of ImageNet's channels, R G B, of values in [0,1]; the reference's normalisation.
constexpr std::array kMean{0.485, 0.456, 0.406};
constexpr std::array kDeviation{0.229, 0.224, 0.225};

void plan_threads(ComputePlan& plan, const RankPlacement& placement, int num_workers) {
  const int cores = placement.cores;
  if (plan.device.is_cuda()) {  // the GPU computes, the cores load
    plan.loader_threads = std::clamp(cores - 1, 1, num_workers);
  } else {  // one loader thread feeds dozens of compute threads
    plan.loader_threads = std::clamp(cores / 16, 1, num_workers);
    plan.compute_threads = std::max(1, cores - plan.loader_threads);
  }
}

// Activations of every step are allocated anew. glibc would give the large ones back to the kernel each time,
// which then has to clear their pages again: 10 % of a step.
void keep_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc takes
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  ::mallopt(M_TOP_PAD, 64 << 20);
}

// LibTorch's own kernels (BatchNorm, ReLU, additions) stay with AVX2 unless told otherwise; with AVX-512 a
// BF16 step of ResNet-18 takes a quarter less. Read at its first kernel, so it has to be said before; what
// the user says stands.
void prefer_avx512_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    ::setenv("ATEN_CPU_CAPABILITY", "avx512", /*overwrite=*/0);
  }
#endif
}

}  // namespace

CpuCapabilities find_cpu_capabilities() {
  prefer_avx512_kernels();
  if (at::cpu::init_amx()) return {true, "AMX"};  // also asks the kernel for the tiles
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bf16")) return {true, "AVX512-BF16"};
  if (__builtin_cpu_supports("avx512f")) return {false, "AVX512"};
  if (__builtin_cpu_supports("avx2")) return {false, "AVX2"};
#endif
  return {false, "baseline"};
}

ComputePlan plan_compute(const TrainOptions& options, const RankPlacement& placement,
                         const CpuCapabilities& cpu, int device_count) {
  ComputePlan plan;
  SSD_VALIDATE(options.device != DeviceChoice::cuda || device_count > 0,
               "--device cuda, but no GPU is visible on {}; in a container use --nv, or take --device cpu",
               placement.host);
  if (options.device != DeviceChoice::cpu && device_count > 0) {
    plan.device =
        torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(choose_gpu(placement, device_count)));
  }
  if (options.use_half) {
    plan.arena.compute_type =
        plan.device.is_cuda() ? torch::kHalf : (cpu.has_bfloat16 ? torch::kBFloat16 : torch::kFloat);
    plan.wire_type = WireType::float16;
    plan.loss_scaling = LossScaling::dynamic;
  }
  plan.arena.channels_last = options.layout == DataLayout::automatic
                                 ? options.use_half
                                 : options.layout == DataLayout::channels_last;
  plan_threads(plan, placement, options.num_workers);
  return plan;
}

void apply_compute_plan(const ComputePlan& plan, const TrainOptions& options) {
  keep_freed_memory();
  at::set_num_threads(plan.compute_threads);
  at::set_num_interop_threads(1);
  at::globalContext().setAllowTF32CuBLAS(options.allow_tf32);
  at::globalContext().setAllowTF32CuDNN(options.allow_tf32);
  at::globalContext().setBenchmarkCuDNN(true);
#if SSD_WITH_CUDA
  if (plan.device.is_cuda()) c10::cuda::set_device(plan.device.index());
#endif
}

std::string describe(const ComputePlan& plan, const TrainOptions& options, const CpuCapabilities& cpu) {
  std::string text = fmt::format(
      "{}, {} compute, {}, gradients in {}", plan.device.is_cuda() ? "CUDA" : "CPU",
      c10::toString(plan.arena.compute_type), plan.arena.channels_last ? "channels last" : "channels first",
      wire_type_name(plan.wire_type));
  if (!plan.device.is_cuda()) text += fmt::format(", {}", cpu.name);
  if (options.use_half && plan.arena.compute_type == torch::kFloat) {
    text += " (--fp16: this processor has neither AMX nor AVX512-BF16, so it computes in float)";
  }
  return text + fmt::format("; per rank {} compute and {} loader threads", plan.compute_threads,
                            plan.loader_threads);
}

std::unique_ptr<GradientCommunicator> make_gradient_communicator(const MpiComm& world,
                                                                 [[maybe_unused]] const ComputePlan& plan) {
  if (world.world_size() == 1) return nullptr;
#if SSD_WITH_CUDA
  if (plan.device.is_cuda()) {
    NcclOptions options;
    options.device = plan.device.index();
    options.compute_stream = c10::cuda::getCurrentCUDAStream(plan.device.index()).stream();
    return make_nccl_gradient_communicator(world, options);
  }
#endif
  return make_mpi_gradient_communicator(world);
}

torch::Tensor normalised_images(const std::uint8_t* images, int count, const ComputePlan& plan) {
  // The scale and shift of (value / 255 - mean) / deviation.
  std::array<float, 3> scale{}, shift{};
  for (std::size_t c = 0; c < 3; ++c) {
    scale[c] = static_cast<float>(1 / (255 * kDeviation[c]));
    shift[c] = static_cast<float>(-kMean[c] / kDeviation[c]);
  }
  const auto on_device = [&](std::array<float, 3>& values) {
    return torch::from_blob(values.data(), {3}, torch::kFloat)
        .to(plan.device, /*non_blocking=*/false, /*copy=*/true);
  };
  auto* bytes = const_cast<std::uint8_t*>(images);
  const auto pixels =
      torch::from_blob(bytes, {count, kInputSide, kInputSide, 3}, torch::kByte).to(plan.device);
  auto values = pixels.to(torch::kFloat).mul_(on_device(scale)).add_(on_device(shift));
  values = values.permute({0, 3, 1, 2}).to(plan.arena.compute_type);  // a channels-last view
  return plan.arena.channels_last ? values : values.contiguous();
}

}  // namespace ssd
