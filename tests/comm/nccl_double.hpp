// NCCL without a GPU, for tests of the NCCL communicator's sequence of calls: the table of functions over a
// simulated device, where averages travel by MPI in host memory, with the rules of NCCL checked and with
// faults injected.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "comm/mpi_comm.hpp"
#include "comm/nccl_functions.hpp"
#include "comm/simulated_device.hpp"

namespace ssd::test {

enum class NcclFault {
  none,
  no_unique_id,          // ncclGetUniqueId fails
  start_error,           // ncclCommInitRankConfig fails
  start_never_ends,      // it is in progress for ever, on all ranks
  average_error,         // ncclAllReduce fails
  average_call_hangs,    // ncclAllReduce does not return
  average_never_ends,    // it is in progress on the stream for ever, on all ranks
  error_during_average,  // ncclCommGetAsyncError tells one, and ncclRemoteError on the other ranks
  finish_never_ends      // ncclCommFinalize is in progress for ever
};

struct NcclInjection {
  NcclFault fault = NcclFault::none;
  int rank = 0;     // where it lies
  int average = 0;  // which one it meets, counted from 0
  bool does_abort_hang = false;
  int polls_in_progress = 2;  // how often a call is reported as in progress before it is carried out
  std::chrono::microseconds call_time{0};  // of each call on the communicator
};

class NcclDouble {
 public:
  NcclDouble(const MpiComm& world, const NcclInjection& injection);  // collective

  SimulatedDevice& device();
  NcclFunctions functions();

  // What the rules of CUDA and NCCL forbid and was done; and, with what was made but not destroyed, what is
  // left.
  std::vector<std::string> broken_rules() const;
  std::vector<std::string> leaks() const;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with threads that are left behind in a call that hangs
};

}  // namespace ssd::test
