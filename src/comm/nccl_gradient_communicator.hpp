// Averages of gradients on GPUs by NCCL: ncclAvg on a stream of its own, ordered with the caller's stream by events.
// Only in builds with CUDA.
#pragma once

#include <chrono>
#include <memory>

#include "comm/gradient_communicator.hpp"

namespace ssd {

struct NcclOptions {
  int device = 0;                           // CUDA device of this rank
  void* compute_stream = nullptr;           // cudaStream_t on which gradients become ready and are used
  std::chrono::seconds start_timeout{120};  // for ncclCommInitRankConfig
  std::chrono::seconds step_timeout{600};   // for one average; then the job is aborted
};

// Collective: the unique id travels by MPI. Throws Error with a hint where NCCL does not come up in time.
std::unique_ptr<GradientCommunicator> make_nccl_gradient_communicator(const MpiComm& world, const NcclOptions& options);

int nccl_version();  // local, as ncclGetVersion gives it: 22809 is 2.28.9

}  // namespace ssd
