// Averages of gradients on GPUs by NCCL: ncclAvg on a stream of its own, ordered with the caller's stream by
// events.
//
// Note [One line when NCCL fails]
// What NCCL reports late (an asynchronous error, an average that does not end) is seen by a watch thread: it
// aborts the communicator, prints one line and ends the job. What a call reports is thrown, after the
// communicator was aborted; the program prints it and ends the job (run_program). Most failures reach every
// rank at about the same time. Each waits a little before it speaks, longer where the cause lies on another
// rank, and longer the higher its rank: the first to speak ends the job, and the others are gone before their
// turn.
#pragma once

#include <chrono>
#include <memory>

#include "comm/gradient_communicator.hpp"
#include "comm/nccl_functions.hpp"

namespace ssd {

struct NcclOptions {
  int device = 0;                           // CUDA device of this rank
  void* compute_stream = nullptr;           // cudaStream_t on which gradients become ready and are used
  std::chrono::seconds start_timeout{120};  // for ncclCommInitRankConfig
  std::chrono::seconds step_timeout{600};   // from the start of an average to its end, finished or not
};

// Collective: the unique id travels by MPI. Throws AgreedFailure on all ranks where streams, events or the
// unique id cannot be made, LibraryError where NCCL does not come up in time. The members belong to one
// thread at a time.
//
// Destroying it is collective: averages in flight are waited for, then the communicator is finalized. While
// an exception is in flight it is aborted instead, without waiting for any other rank. compute_stream must
// live longer, and MPI.
std::unique_ptr<GradientCommunicator> make_nccl_gradient_communicator(const MpiComm& world,
                                                                      const NcclOptions& options,
                                                                      NcclFunctions functions);

// Only in builds with CUDA: the same with the libraries, and NCCL's version as ncclGetVersion gives it
// (local): 22809 is 2.28.9.
std::unique_ptr<GradientCommunicator> make_nccl_gradient_communicator(const MpiComm& world,
                                                                      const NcclOptions& options);
int nccl_version();

}  // namespace ssd
