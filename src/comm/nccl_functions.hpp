// Every call that the NCCL gradient communicator makes into CUDA and NCCL, as one table: the libraries in
// builds with CUDA (nccl_functions.cpp), a double in the tests. No header of either library is needed, so
// that the communicator is built and tested everywhere. Opaque handles: a stream is a cudaStream_t, an event
// a cudaEvent_t, a communicator a ncclComm_t. No entry throws. The entries for one communicator are called by
// one thread at a time, but for comm_abort.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>

#include "comm/gradient_communicator.hpp"

namespace ssd {

// in_progress: a non-blocking call that has not been carried out (ncclInProgress), or an event that the
// device has not reached (cudaErrorNotReady). failed_remotely: another rank or the network has failed
// (ncclRemoteError).
enum class CallCode { success, in_progress, failed, failed_remotely };

struct [[nodiscard]] CallResult {
  CallCode code = CallCode::success;
  std::string text;  // the library's words, where it failed
};

using NcclUniqueId = std::array<std::byte, 128>;  // NCCL_UNIQUE_ID_BYTES

struct NcclFunctions {
  // CUDA.
  std::function<CallResult(int device)> set_device;        // of the calling thread
  std::function<CallResult(void** stream)> stream_create;  // independent of the default stream
  std::function<CallResult(void* stream)> stream_destroy;
  std::function<CallResult(void** event)> event_create;  // without a time
  std::function<CallResult(void* event)> event_destroy;
  std::function<CallResult(void* event, void* stream)> event_record;
  std::function<CallResult(void* event)> event_query;
  std::function<CallResult(void* stream, void* event)> stream_wait_event;

  // NCCL. The communicator is non-blocking: after each call its state is polled until it is no longer
  // in_progress.
  std::function<CallResult(NcclUniqueId* id)> get_unique_id;
  std::function<CallResult(void** comm, int world_size, const NcclUniqueId& id, int rank)> comm_init;
  std::function<CallResult(void* comm)>
      comm_state;  // ncclCommGetAsyncError: what it returns, else what it tells
  std::function<CallResult(void* data, std::size_t count, WireType type, void* comm, void* stream)>
      all_reduce_average;
  std::function<CallResult(void* comm)> comm_finalize;
  std::function<CallResult(void* comm)> comm_destroy;
  std::function<CallResult(void* comm)> comm_abort;
};

// The table of the libraries. Only in builds with CUDA.
NcclFunctions nccl_functions();

}  // namespace ssd
