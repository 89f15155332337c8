#include "comm/nccl_gradient_communicator.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "comm/agreement.hpp"
#include "comm/mpi_session.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace ssd {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kPollInterval = 20us;    // while a call has not been carried out
constexpr auto kWatchInterval = 100ms;  // between two looks of the watch
constexpr auto kLockTimeout = 500ms;    // after which a call counts as stuck inside NCCL
constexpr auto kAbortTimeout = 10s;     // for ncclCommAbort
// How long a rank waits before it speaks: Note [One line when NCCL fails]. MPI_Abort has been seen to take
// more than a second to reach every rank of a busy machine. The ranks above the last step speak together,
// where all below them are silent.
constexpr auto kPatienceStep = 3s;
constexpr int kLastPatienceStep = 3;
constexpr auto kPatienceForOthers = 12s;  // where the cause lies on another rank: longer than all steps

// A stream or an event.
using DeviceHandle = std::unique_ptr<void, std::function<CallResult(void*)>>;

bool has_failed(const CallResult& result) {
  return result.code == CallCode::failed || result.code == CallCode::failed_remotely;
}

void check(const char* library, const char* call, const CallResult& result) {
  if (has_failed(result)) throw LibraryError(library, call, result.text);
}

void check_cuda(const char* call, const CallResult& result) {
  check("CUDA", call, result);
}

DeviceHandle make_handle(const char* call, const std::function<CallResult(void**)>& create,
                         const std::function<CallResult(void*)>& destroy) {
  void* handle = nullptr;
  check_cuda(call, create(&handle));
  return {handle, destroy};
}

CallResult late_result(std::chrono::seconds timeout) {
  return {CallCode::failed,
          fmt::format("it did not end within {} s; NCCL_DEBUG=INFO tells more, NCCL_SOCKET_IFNAME "
                      "chooses the network interface",
                      timeout.count())};
}

class NcclGradientCommunicator : public GradientCommunicator {
 public:
  NcclGradientCommunicator(const MpiComm& world, const NcclOptions& options, NcclFunctions functions)
      : options_(options), functions_(std::move(functions)), rank_(world.rank()) {
    NcclUniqueId id{};
    run_in_agreement(world, [&] {
      check_cuda("cudaSetDevice", functions_.set_device(options_.device));
      stream_ = make_handle("cudaStreamCreateWithFlags", functions_.stream_create, functions_.stream_destroy);
      gradients_ready_ = make_event();
      averages_ready_ = make_event();
      if (world.is_root()) check("NCCL", "ncclGetUniqueId", functions_.get_unique_id(&id));
    });
    world.broadcast_in_place(id);
    const auto deadline = Clock::now() + options_.start_timeout;
    auto result = functions_.comm_init(&comm_, world.world_size(), id, rank_);
    wait_until_done("ncclCommInitRankConfig", std::move(result), deadline, options_.start_timeout);
    watch_ = std::thread([this] { run_watch(); });
  }

  ~NcclGradientCommunicator() override {
    if (std::uncaught_exceptions() == 0 && comm_ != nullptr) finalize();
    {
      const std::lock_guard lock(state_mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
    watch_.join();
    abort();  // what has not been finalized
  }

  // ncclAvg is documented as the sum divided by the number of ranks. What it does to floating types
  // (NCCL 2.28.9, src/enqueue.cc, hostToDevRedOp, ncclDevPreMulSum) is to multiply each rank's value by
  // 1/ranks, rounded to the type, before the sum: halves overflow no sooner than with the MPI communicator's
  // prescale.
  double prescale() const override { return 1; }

  void start_average(void* data, std::size_t count, WireType type) override {
    check_cuda("cudaEventRecord", functions_.event_record(gradients_ready_.get(), options_.compute_stream));
    check_cuda("cudaStreamWaitEvent", functions_.stream_wait_event(stream_.get(), gradients_ready_.get()));
    auto end = make_event();
    const auto start = Clock::now();
    {
      const std::lock_guard lock(state_mutex_);
      starting_since_ = start;
    }
    auto result = on_comm(
        [&](void* comm) { return functions_.all_reduce_average(data, count, type, comm, stream_.get()); });
    wait_until_done("ncclAllReduce", std::move(result), start + options_.step_timeout, options_.step_timeout);
    check_cuda("cudaEventRecord", functions_.event_record(end.get(), stream_.get()));
    const std::lock_guard lock(state_mutex_);
    in_flight_.push_back({std::move(end), start});
    starting_since_.reset();
  }

  void finish() override {
    check_cuda("cudaEventRecord", functions_.event_record(averages_ready_.get(), stream_.get()));
    check_cuda("cudaStreamWaitEvent",
               functions_.stream_wait_event(options_.compute_stream, averages_ready_.get()));
  }

 private:
  struct Average {
    DeviceHandle end;  // event
    Clock::time_point start;
  };
  struct Failure {
    const char* library;
    const char* call;
    CallResult result;
  };

  DeviceHandle make_event() const {
    return make_handle("cudaEventCreateWithFlags", functions_.event_create, functions_.event_destroy);
  }

  // NCCL takes calls of one thread at a time for a communicator; ncclCommGetAsyncError is one of them, since
  // it joins NCCL's own thread that has carried out the last call.
  CallResult on_comm(const std::function<CallResult(void*)>& call) {
    const std::lock_guard lock(comm_mutex_);
    SSD_EXPECT(comm_ != nullptr);
    return call(comm_);
  }

  // The lock is free between the polls, for the watch.
  void wait_until_done(const char* call, CallResult result, Clock::time_point deadline,
                       std::chrono::seconds timeout) {
    while (result.code == CallCode::in_progress) {
      if (Clock::now() > deadline) {
        result = late_result(timeout);
        break;
      }
      std::this_thread::sleep_for(kPollInterval);
      result = on_comm(functions_.comm_state);
    }
    if (!has_failed(result)) return;
    abort();
    std::this_thread::sleep_for(patience(result.code));
    throw LibraryError("NCCL", call, result.text);
  }

  // Waits for what is in flight, with the watch looking on; a peer that does not come costs the time-out
  // only.
  void finalize() {
    try {
      {
        std::unique_lock lock(state_mutex_);
        changed_.wait(lock, [this] { return in_flight_.empty(); });
      }
      wait_until_done("ncclCommFinalize", on_comm(functions_.comm_finalize),
                      Clock::now() + options_.step_timeout, options_.step_timeout);
      const std::lock_guard lock(comm_mutex_);
      check("NCCL", "ncclCommDestroy", functions_.comm_destroy(std::exchange(comm_, nullptr)));
    } catch (const std::exception& error) {
      log_warning("{}; every average had ended before", error.what());
    }
  }

  void abort() {
    void* comm = nullptr;
    {
      const std::lock_guard lock(comm_mutex_);
      comm = std::exchange(comm_, nullptr);
    }
    abort(comm);
  }

  // ncclCommAbort has been seen to hang (github.com/NVIDIA/nccl/issues/992, 1013, 1777): it gets a thread of
  // its own, which is left behind after a while. Nobody may touch the communicator afterwards.
  void abort(void* comm) const {
    if (comm == nullptr) return;
    std::packaged_task<void()> task([functions = functions_, device = options_.device, comm] {
      static_cast<void>(functions.set_device(device));
      static_cast<void>(functions.comm_abort(comm));
    });
    const auto done = task.get_future();
    std::thread(std::move(task)).detach();
    done.wait_for(kAbortTimeout);
  }

  std::chrono::seconds patience(CallCode code) const {
    const auto own = std::min(rank_, kLastPatienceStep) * kPatienceStep;
    return code == CallCode::failed_remotely ? own + kPatienceForOthers : own;
  }

  void run_watch() {
    static_cast<void>(functions_.set_device(options_.device));
    std::unique_lock lock(state_mutex_);
    while (!changed_.wait_for(lock, kWatchInterval, [this] { return is_stopping_; })) {
      if (const auto failure = look()) end_job(*failure);
      changed_.notify_all();
    }
  }

  // Under the state lock. Forgets the averages that have ended, then asks for errors and the deadline of the
  // oldest.
  std::optional<Failure> look() {
    while (!in_flight_.empty()) {
      const auto end = functions_.event_query(in_flight_.front().end.get());
      // The caller's own CUDA calls report the same error: they are left the first word.
      if (has_failed(end)) return Failure{"CUDA", "cudaEventQuery", {CallCode::failed_remotely, end.text}};
      if (end.code == CallCode::in_progress) break;
      in_flight_.pop_front();
    }
    const auto oldest = in_flight_.empty() ? starting_since_ : in_flight_.front().start;
    if (oldest && Clock::now() > *oldest + options_.step_timeout) {
      return Failure{"NCCL", "an allreduce", late_result(options_.step_timeout)};
    }
    const std::unique_lock lock(comm_mutex_, std::try_to_lock);
    if (!lock || comm_ == nullptr) return std::nullopt;
    auto state = functions_.comm_state(comm_);
    if (has_failed(state)) return Failure{"NCCL", "an allreduce", std::move(state)};
    return std::nullopt;
  }

  // Keeps both locks until the process is gone, so that the caller meets no aborted communicator. Returns
  // where the caller has aborted it already: then an exception is on its way.
  void end_job(const Failure& failure) {
    std::unique_lock lock(comm_mutex_, kLockTimeout);
    if (lock) {
      if (comm_ == nullptr) return;
      abort(comm_);
    }
    std::this_thread::sleep_for(patience(failure.result.code));
    log_error("{}", LibraryError(failure.library, failure.call, failure.result.text).what());
    abort_job(1);
  }

  const NcclOptions options_;
  const NcclFunctions functions_;
  const int rank_;
  DeviceHandle stream_;
  DeviceHandle gradients_ready_;  // event of the compute stream, recorded again for each average
  DeviceHandle averages_ready_;   // event of stream_

  std::timed_mutex comm_mutex_;
  void* comm_ = nullptr;  // null once it was destroyed or aborted

  std::mutex state_mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  std::deque<Average> in_flight_;                    // oldest first
  std::optional<Clock::time_point> starting_since_;  // of the average whose call has not returned

  std::thread watch_;
};

}  // namespace

std::unique_ptr<GradientCommunicator> make_nccl_gradient_communicator(const MpiComm& world,
                                                                      const NcclOptions& options,
                                                                      NcclFunctions functions) {
  return std::make_unique<NcclGradientCommunicator>(world, options, std::move(functions));
}

}  // namespace ssd
