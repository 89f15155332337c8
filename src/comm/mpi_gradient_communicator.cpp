#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include "comm/gradient_communicator.hpp"
#include "comm/half.hpp"
#include "comm/mpi_check.hpp"
#include "core/error.hpp"

namespace ssd {

std::size_t wire_type_bytes(WireType type) {
  switch (type) {
    case WireType::float64:
      return 8;
    case WireType::float32:
      return 4;
    default:
      return 2;
  }
}

const char* wire_type_name(WireType type) {
  switch (type) {
    case WireType::float64:
      return "FP64";
    case WireType::float32:
      return "FP32";
    case WireType::bfloat16:
      return "BF16";
    default:
      return "FP16";
  }
}

namespace {

extern "C" void ssd_mpi_add_halves(void* in, void* inout, int* count, MPI_Datatype*) {
  add_halves(static_cast<std::uint16_t*>(inout), static_cast<const std::uint16_t*>(in),
             static_cast<std::size_t>(*count));
}

extern "C" void ssd_mpi_add_bfloat16s(void* in, void* inout, int* count, MPI_Datatype*) {
  add_bfloat16s(static_cast<std::uint16_t*>(inout), static_cast<const std::uint16_t*>(in),
                static_cast<std::size_t>(*count));
}

// A small sum ends within the first polls, some 10 us: 50 buckets of 64 KB on 2 ranks take 2 ms, not 20. A large
// one has to leave the core to the caller's work.
constexpr int kQuickPolls = 20;
constexpr auto kSleep = std::chrono::microseconds(50);

struct PendingSum {
  void* data;
  std::size_t count;
  WireType type;
};

class MpiGradientCommunicator : public GradientCommunicator {
 public:
  explicit MpiGradientCommunicator(const MpiComm& world) : comm_(world.duplicate()) {
    SSD_EXPECT(comm_.handle() != nullptr);
    SSD_MPI_CALL(MPI_Op_create, ssd_mpi_add_halves, 1, &add_halves_);
    SSD_MPI_CALL(MPI_Op_create, ssd_mpi_add_bfloat16s, 1, &add_bfloat16s_);
    progress_ = std::thread([this] { run_progress(); });
  }

  ~MpiGradientCommunicator() override {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
      is_abandoned_ = std::uncaught_exceptions() > 0;
    }
    changed_.notify_all();
    progress_.join();
    MPI_Op_free(&add_halves_);
    MPI_Op_free(&add_bfloat16s_);
  }

  double prescale() const override { return 1.0 / comm_.world_size(); }

  void start_average(void* data, std::size_t count, WireType type) override {
    SSD_EXPECT(count <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back({data, count, type});
      ++unfinished_;
    }
    changed_.notify_all();
  }

  void finish() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return unfinished_ == 0 || failure_ != nullptr; });
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  MPI_Request start(const PendingSum& sum) {
    const auto count = static_cast<int>(sum.count);
    const auto comm = static_cast<MPI_Comm>(comm_.handle());
    MPI_Request request = MPI_REQUEST_NULL;
    const auto call = [&](MPI_Datatype datatype, MPI_Op operation) {
      SSD_MPI_CALL(MPI_Iallreduce, MPI_IN_PLACE, sum.data, count, datatype, operation, comm, &request);
    };
    switch (sum.type) {
      case WireType::float16:
        call(MPI_UINT16_T, add_halves_);
        break;
      case WireType::bfloat16:
        call(MPI_UINT16_T, add_bfloat16s_);
        break;
      case WireType::float32:
        call(MPI_FLOAT, MPI_SUM);
        break;
      case WireType::float64:
        call(MPI_DOUBLE, MPI_SUM);
        break;
    }
    return request;
  }

  void run_progress() {
    try {
      while (const auto sum = next_sum()) {
        auto request = start(*sum);
        int is_done = 0;
        SSD_MPI_CALL(MPI_Test, &request, &is_done, MPI_STATUS_IGNORE);
        for (int polls = 1; is_done == 0; ++polls) {
          if (is_abandoned()) return;
          if (polls < kQuickPolls) {
            std::this_thread::yield();
          } else {
            std::this_thread::sleep_for(kSleep);
          }
          SSD_MPI_CALL(MPI_Test, &request, &is_done, MPI_STATUS_IGNORE);
        }
        {
          const std::lock_guard lock(mutex_);
          --unfinished_;
        }
        changed_.notify_all();
      }
    } catch (...) {
      {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
      }
      changed_.notify_all();
    }
  }

  // Sleeps until there is a sum to start; nothing when the communicator is being destroyed.
  std::optional<PendingSum> next_sum() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_stopping_ || !waiting_.empty(); });
    if (waiting_.empty() || is_abandoned_) return std::nullopt;
    const auto sum = waiting_.front();
    waiting_.pop_front();
    return sum;
  }

  bool is_abandoned() {
    const std::lock_guard lock(mutex_);
    return is_abandoned_;
  }

  MpiComm comm_;
  MPI_Op add_halves_ = MPI_OP_NULL;
  MPI_Op add_bfloat16s_ = MPI_OP_NULL;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<PendingSum> waiting_;
  std::size_t unfinished_ = 0;
  bool is_stopping_ = false;
  bool is_abandoned_ = false;  // destroyed while an exception is in flight: what was started may never end
  std::exception_ptr failure_;
  std::thread progress_;
};

}  // namespace

std::unique_ptr<GradientCommunicator> make_mpi_gradient_communicator(const MpiComm& world) {
  return std::make_unique<MpiGradientCommunicator>(world);
}

}  // namespace ssd
