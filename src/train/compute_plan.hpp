// What a run computes with on this machine: device, dtype, layout, threads; decided once at start and logged.
#pragma once

#include <torch/torch.h>

#include <string>

#include "comm/gradient_communicator.hpp"
#include "comm/placement.hpp"
#include "train/loss_scaler.hpp"
#include "train/parameter_arena.hpp"
#include "train/train_options.hpp"

namespace ssd {

struct ComputePlan {
  torch::Device device = torch::kCPU;
  ArenaOptions arena;
  WireType wire_type = WireType::float32;
  LossScaling loss_scaling = LossScaling::none;
  int compute_threads = 1;  // of LibTorch
  int loader_threads = 1;
};

// What the processor can do; a parameter so that the decision can be tested on any machine.
struct CpuCapabilities {
  bool has_bfloat16 = false;  // AMX or AVX512-BF16
  std::string name;  // "AMX", "AVX512-BF16", "AVX512", "AVX2" or "baseline": for the log and checkpoints
};
// Call it before LibTorch computes anything: it also chooses the width of LibTorch's own kernels
// (ATEN_CPU_CAPABILITY).
CpuCapabilities find_cpu_capabilities();

int visible_device_count();  // GPUs that this process may use

// Note [Threads of a rank]
// LibTorch's CPU kernels spin at barriers: with two compute threads, one more runnable thread on the same
// cores makes a step take a minute instead of a second. So a rank with more than one compute thread has
// compute + loader threads <= its cores; a rank with one core computes with one thread, and its loader
// thread, which sleeps, may share the core.
//
// device_count: visible GPUs. Throws Error where a GPU is asked for and there is none, or fewer than ranks.
ComputePlan plan_compute(const TrainOptions& options, const RankPlacement& placement,
                         const CpuCapabilities& cpu, int device_count);

// Sets LibTorch's threads, TF32 and cuDNN as planned; on a GPU makes it the current device. Once per process,
// before LibTorch computes anything: a second call throws. Also tells malloc to keep freed memory, for the
// whole process.
void apply_compute_plan(const ComputePlan& plan, const TrainOptions& options);

// Tells one GPU of the world from all others: host and the device's UUID. Empty for a CPU.
std::string device_identity(const ComputePlan& plan, const RankPlacement& placement);

std::string describe(const ComputePlan& plan, const TrainOptions& options, const CpuCapabilities& cpu);

// Null for a world of one.
std::unique_ptr<GradientCommunicator> make_gradient_communicator(const MpiComm& world,
                                                                 const ComputePlan& plan);

}  // namespace ssd
