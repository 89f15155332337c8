#include "train/compute_plan.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/cpu/Utils.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "core/error.hpp"
#if SSD_WITH_CUDA
#include <c10/cuda/CUDAStream.h>

#include "comm/nccl_gradient_communicator.hpp"
#endif

namespace ssd {
namespace {

WireType wire_type_of(GradientType type, bool use_half) {
  switch (type) {
    case GradientType::float16:
      return WireType::float16;
    case GradientType::bfloat16:
      return WireType::bfloat16;
    case GradientType::float32:
      return WireType::float32;
    default:
      return use_half ? WireType::float16 : WireType::float32;
  }
}

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

int visible_device_count() {
  return torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
}

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
  }
  plan.wire_type = wire_type_of(options.gradient_type, options.use_half);
  // Small gradients leave FP16's range without it; with --fp16 always on, so that a run on other hardware
  // goes on alike.
  if (options.use_half || plan.wire_type == WireType::float16) {
    plan.loss_scaling = LossScaling::dynamic;
  } else if (options.skips_nonfinite) {
    plan.loss_scaling = LossScaling::checked;
  }
  SSD_VALIDATE(!options.use_step_graph || plan.device.is_cuda(),
               "--cuda-graph, but this run computes on a CPU");
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
  // A graph can be captured from a stream of its own only, and everything that it works on has to belong to
  // that stream.
  if (options.use_step_graph)
    c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(false, plan.device.index()));
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

}  // namespace ssd
