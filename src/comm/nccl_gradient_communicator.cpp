#include "comm/nccl_gradient_communicator.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "comm/cuda_check.hpp"
#include "comm/mpi_session.hpp"
#include "core/log.hpp"

namespace ssd {
namespace {

using Clock = std::chrono::steady_clock;

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

class CudaStream {
 public:
  CudaStream() { SSD_CUDA_CALL(cudaStreamCreateWithFlags, &stream_, cudaStreamNonBlocking); }
  ~CudaStream() { cudaStreamDestroy(stream_); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaEvent {
 public:
  CudaEvent() { SSD_CUDA_CALL(cudaEventCreateWithFlags, &event_, cudaEventDisableTiming); }
  ~CudaEvent() { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class NcclGradientCommunicator : public GradientCommunicator {
 public:
  NcclGradientCommunicator(const MpiComm& world, const NcclOptions& options) : options_(options) {
    SSD_CUDA_CALL(cudaSetDevice, options.device);
    ncclUniqueId id{};
    if (world.is_root()) SSD_NCCL_CALL(ncclGetUniqueId, &id);
    world.broadcast_in_place(std::as_writable_bytes(std::span(&id, 1)));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    SSD_NCCL_CALL(ncclCommInitRankConfig, &comm_, world.world_size(), id, world.rank(), &config);
    wait_until_ready(options.start_timeout, "start");
    watch_ = std::thread([this] { run_watch(); });
  }

  ~NcclGradientCommunicator() override {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
    if (watch_.joinable()) watch_.join();
    ncclCommFinalize(comm_);
    ncclResult_t state = ncclInProgress;
    while (ncclCommGetAsyncError(comm_, &state) == ncclSuccess && state == ncclInProgress) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ncclCommDestroy(comm_);
  }

  double prescale() const override { return 1; }

  void start_average(void* data, std::size_t count, WireType type) override {
    SSD_CUDA_CALL(cudaEventRecord, gradients_ready_.get(), compute_stream());
    SSD_CUDA_CALL(cudaStreamWaitEvent, stream_.get(), gradients_ready_.get(), 0);
    SSD_NCCL_CALL(ncclAllReduce, data, data, count, nccl_type(type), ncclAvg, comm_, stream_.get());
    wait_until_ready(options_.step_timeout, "allreduce");
  }

  void finish() override {
    SSD_CUDA_CALL(cudaEventRecord, averages_ready_.get(), stream_.get());
    SSD_CUDA_CALL(cudaStreamWaitEvent, compute_stream(), averages_ready_.get(), 0);
    {
      const std::lock_guard lock(mutex_);
      deadline_ = Clock::now() + options_.step_timeout;
      is_pending_ = true;
    }
    changed_.notify_all();
  }

 private:
  cudaStream_t compute_stream() const { return static_cast<cudaStream_t>(options_.compute_stream); }

  // A non-blocking communicator answers ncclInProgress until a call has been carried out.
  void wait_until_ready(std::chrono::seconds timeout, const char* what) {
    const auto deadline = Clock::now() + timeout;
    ncclResult_t state = ncclInProgress;
    while (true) {
      SSD_NCCL_CALL(ncclCommGetAsyncError, comm_, &state);
      if (state == ncclSuccess) return;
      if (state != ncclInProgress) throw LibraryError("NCCL", what, ncclGetErrorString(state));
      if (Clock::now() > deadline) {
        ncclCommAbort(comm_);
        throw Error(fmt::format("NCCL: {} did not end within {} s; see NCCL_DEBUG=INFO, and NCCL_SOCKET_IFNAME for the "
                                "network interface",
                                what, timeout.count()));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  // Sees errors and deadlines while the caller does not look: aborts the communicator and the job with one line.
  void run_watch() {
    cudaSetDevice(options_.device);
    std::unique_lock lock(mutex_);
    while (!is_stopping_) {
      changed_.wait_for(lock, std::chrono::milliseconds(100));
      if (is_pending_ && cudaEventQuery(averages_ready_.get()) == cudaSuccess) is_pending_ = false;
      ncclResult_t state = ncclSuccess;
      const auto query = ncclCommGetAsyncError(comm_, &state);
      const bool has_failed = query != ncclSuccess || (state != ncclSuccess && state != ncclInProgress);
      const bool is_late = is_pending_ && Clock::now() > deadline_;
      if (!has_failed && !is_late) continue;
      log_error("NCCL: {}", is_late ? fmt::format("an allreduce did not end within {} s", options_.step_timeout.count())
                                    : std::string(ncclGetErrorString(query != ncclSuccess ? query : state)));
      ncclCommAbort(comm_);
      abort_job(1);
    }
  }

  NcclOptions options_;
  ncclComm_t comm_ = nullptr;
  CudaStream stream_;
  CudaEvent gradients_ready_;
  CudaEvent averages_ready_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  bool is_pending_ = false;
  Clock::time_point deadline_;
  std::thread watch_;
};

}  // namespace

std::unique_ptr<GradientCommunicator> make_nccl_gradient_communicator(const MpiComm& world, const NcclOptions& options) {
  return std::make_unique<NcclGradientCommunicator>(world, options);
}

int nccl_version() {
  int version = 0;
  SSD_NCCL_CALL(ncclGetVersion, &version);
  return version;
}

}  // namespace ssd
