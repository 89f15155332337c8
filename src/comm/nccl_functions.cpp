// What only builds with CUDA compile of the NCCL communicator: each entry of the table is one call of the
// library.
#include "comm/nccl_functions.hpp"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstring>

#include "comm/nccl_gradient_communicator.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

static_assert(sizeof(ncclUniqueId) == sizeof(NcclUniqueId));

CallResult result_of(cudaError_t code) {
  if (code == cudaSuccess) return {};
  if (code == cudaErrorNotReady) return {CallCode::in_progress, {}};
  return {CallCode::failed, cudaGetErrorString(code)};
}

CallResult result_of(ncclResult_t code) {
  if (code == ncclSuccess) return {};
  if (code == ncclInProgress) return {CallCode::in_progress, {}};
  std::string text = ncclGetErrorString(code);
  // The last message of NCCL in this process, often the cause: "socketProgress: Connection closed by remote
  // peer".
  const std::string last = ncclGetLastError(nullptr);
  if (!last.empty()) text += "; " + last.substr(0, last.find('\n'));
  return {code == ncclRemoteError ? CallCode::failed_remotely : CallCode::failed, text};
}

cudaStream_t stream_of(void* handle) {
  return static_cast<cudaStream_t>(handle);
}
cudaEvent_t event_of(void* handle) {
  return static_cast<cudaEvent_t>(handle);
}
ncclComm_t comm_of(void* handle) {
  return static_cast<ncclComm_t>(handle);
}

ncclDataType_t nccl_type(WireType type) {
  switch (type) {
    case WireType::float16:
      return ncclFloat16;
    case WireType::bfloat16:
      return ncclBfloat16;
    case WireType::float32:
      return ncclFloat32;
    default:
      return ncclFloat64;
  }
}

CallResult create_stream(void** stream) {
  cudaStream_t handle = nullptr;
  const auto code = cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking);
  *stream = handle;
  return result_of(code);
}

CallResult create_event(void** event) {
  cudaEvent_t handle = nullptr;
  const auto code = cudaEventCreateWithFlags(&handle, cudaEventDisableTiming);
  *event = handle;
  return result_of(code);
}

CallResult get_unique_id(NcclUniqueId* id) {
  ncclUniqueId bytes{};
  const auto code = ncclGetUniqueId(&bytes);
  std::memcpy(id->data(), &bytes, sizeof bytes);
  return result_of(code);
}

CallResult init_comm(void** comm, int world_size, const NcclUniqueId& id, int rank) {
  ncclUniqueId bytes{};
  std::memcpy(&bytes, id.data(), sizeof bytes);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t handle = nullptr;
  const auto code = ncclCommInitRankConfig(&handle, world_size, bytes, rank, &config);
  *comm = handle;  // may be there after an error too, and then has to be aborted
  return result_of(code);
}

CallResult comm_state(void* comm) {
  ncclResult_t state = ncclSuccess;
  const auto code = ncclCommGetAsyncError(comm_of(comm), &state);
  return result_of(code != ncclSuccess ? code : state);
}

CallResult all_reduce_average(void* data, std::size_t count, WireType type, void* comm, void* stream) {
  return result_of(
      ncclAllReduce(data, data, count, nccl_type(type), ncclAvg, comm_of(comm), stream_of(stream)));
}

}  // namespace

NcclFunctions nccl_functions() {
  return {
      .set_device = [](int device) { return result_of(cudaSetDevice(device)); },
      .stream_create = create_stream,
      .stream_destroy = [](void* stream) { return result_of(cudaStreamDestroy(stream_of(stream))); },
      .event_create = create_event,
      .event_destroy = [](void* event) { return result_of(cudaEventDestroy(event_of(event))); },
      .event_record =
          [](void* event, void* stream) {
            return result_of(cudaEventRecord(event_of(event), stream_of(stream)));
          },
      .event_query = [](void* event) { return result_of(cudaEventQuery(event_of(event))); },
      .stream_wait_event =
          [](void* stream, void* event) {
            return result_of(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0));
          },
      .get_unique_id = get_unique_id,
      .comm_init = init_comm,
      .comm_state = comm_state,
      .all_reduce_average = all_reduce_average,
      .comm_finalize = [](void* comm) { return result_of(ncclCommFinalize(comm_of(comm))); },
      .comm_destroy = [](void* comm) { return result_of(ncclCommDestroy(comm_of(comm))); },
      .comm_abort = [](void* comm) { return result_of(ncclCommAbort(comm_of(comm))); },
  };
}

std::unique_ptr<GradientCommunicator> make_nccl_gradient_communicator(const MpiComm& world,
                                                                      const NcclOptions& options) {
  return make_nccl_gradient_communicator(world, options, nccl_functions());
}

int nccl_version() {
  int version = 0;
  const auto result = result_of(ncclGetVersion(&version));
  if (result.code != CallCode::success) throw LibraryError("NCCL", "ncclGetVersion", result.text);
  return version;
}

}  // namespace ssd
