#include "comm/watchdog.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "comm/broadcast_any_length.hpp"
#include "comm/gather_texts.hpp"
#include "comm/life_signs.hpp"
#include "comm/mpi_check.hpp"
#include "comm/mpi_session.hpp"
#include "core/host_name.hpp"
#include "core/log.hpp"
#include "core/phase.hpp"
#include "core/stopwatch.hpp"

namespace ssd {
namespace {

constexpr int kTag = 1;
constexpr double kLongestInterval = 1, kShortestInterval = .05;  // seconds between messages
constexpr double kLastInterval = .005;                           // the same while ranks say that they end

std::vector<std::string> gather_hosts(const MpiComm& world) {
  auto hosts = gather_texts(world, host_name());
  hosts.resize(static_cast<std::size_t>(world.world_size()));
  broadcast_any_length(world, hosts[0]);  // rank 1 names rank 0
  return hosts;
}

}  // namespace

class Watchdog::Thread {
 public:
  Thread(const MpiComm& world, double deadline_s)
      : comm_(world.duplicate()),
        deadline_s_(deadline_s),
        interval_s_(std::clamp(deadline_s / 20, kShortestInterval, kLongestInterval)) {
    const auto hosts = gather_hosts(world);
    if (comm_.is_root()) {
      for (int rank = 0; rank < comm_.world_size(); ++rank)
        watched_.push_back({rank, hosts[static_cast<std::size_t>(rank)], {}, 0});
    } else if (comm_.rank() == 1) {
      watched_.push_back({0, hosts[0], {}, 0});
    }
    for (auto& one : watched_) one.sign = make_life_sign(PhaseNote().what, 0, false);
    thread_ = std::thread([this] { run(); });
  }

  // is_abandoned: other ranks are not waited for.
  void end(bool is_abandoned) {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
      is_abandoned_ = is_abandoned;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void run() {
    try {
      while (pause()) {
        note_time();
        send();
        receive();
        judge();
        if (has_all_last_signs()) return;
      }
    } catch (const std::exception& error) {
      log_error("the watchdog cannot go on: {}", error.what());
      abort_job(1);
    }
  }

  // False where the thread is to end without a word.
  bool pause() {
    std::unique_lock lock(mutex_);
    const double seconds = is_ending_ ? kLastInterval : interval_s_;
    const auto was_ending = is_ending_;
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return is_ending_ != was_ending; });
    ends_now_ = is_ending_;
    return !is_abandoned_;
  }

  void note_time() {
    // More than this is time in which this process was stopped itself.
    const double step = std::min(clock_.seconds(), 2 * interval_s_);
    clock_ = {};
    for (auto& one : watched_) one.silent_seconds += step;
    const auto phase = current_phase();
    seconds_without_change_ = phase.changes == seen_changes_ ? seconds_without_change_ + step : 0;
    seen_changes_ = phase.changes;
    own_ = make_life_sign(phase.what, seconds_without_change_, phase.waits_for_ranks);
    own_.is_last = ends_now_;
  }

  // One message may be under way: a receiver that does not listen must not stop this thread.
  void send() {
    const int receiver = comm_.is_root() ? 1 : 0;
    if (receiver >= comm_.world_size() || has_sent_last_) return;
    if (request_ != MPI_REQUEST_NULL) {
      int is_done = 0;
      SSD_MPI_CALL(MPI_Test, &request_, &is_done, MPI_STATUS_IGNORE);
      if (is_done == 0) return;
    }
    sent_ = own_;
    SSD_MPI_CALL(MPI_Isend, &sent_, static_cast<int>(sizeof sent_), MPI_BYTE, receiver, kTag, comm(),
                 &request_);
    has_sent_last_ = sent_.is_last;
  }

  void receive() {
    if (comm_.is_root()) {
      watched_[0].sign = own_;
      watched_[0].silent_seconds = 0;
    }
    if (watched_.empty() || comm_.world_size() == 1) return;
    while (true) {
      int is_there = 0;
      MPI_Status status;
      SSD_MPI_CALL(MPI_Iprobe, MPI_ANY_SOURCE, kTag, comm(), &is_there, &status);
      if (is_there == 0) return;
      auto& one = watched_[static_cast<std::size_t>(status.MPI_SOURCE)];
      SSD_MPI_CALL(MPI_Recv, &one.sign, static_cast<int>(sizeof one.sign), MPI_BYTE, status.MPI_SOURCE, kTag,
                   comm(), MPI_STATUS_IGNORE);
      one.silent_seconds = 0;
    }
  }

  void judge() {
    // What a living rank 0 has to say, it says itself.
    const auto line =
        comm_.is_root() ? find_stuck_rank(watched_, deadline_s_) : find_silent_rank(watched_, deadline_s_);
    if (!line) return;
    log_error("{}; the job ends here (--watchdog-seconds {:g}); go on with --checkpoint auto", *line,
              deadline_s_);
    abort_job(1);
  }

  bool has_all_last_signs() {
    if (!ends_now_ || (comm_.world_size() > 1 && !has_sent_last_)) return false;
    for (const auto& one : watched_) {
      if (!one.sign.is_last) return false;
    }
    if (request_ == MPI_REQUEST_NULL) return true;
    int is_done = 0;
    SSD_MPI_CALL(MPI_Test, &request_, &is_done, MPI_STATUS_IGNORE);
    return is_done != 0;
  }

  MPI_Comm comm() const { return static_cast<MPI_Comm>(comm_.handle()); }

  MpiComm comm_;
  double deadline_s_;
  double interval_s_;
  // Of the thread alone:
  std::vector<WatchedRank> watched_;
  Stopwatch clock_;
  LifeSign own_, sent_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool has_sent_last_ = false;
  bool ends_now_ = false;
  std::uint64_t seen_changes_ = 0;
  double seconds_without_change_ = 0;

  std::mutex mutex_;  // guards the two below
  bool is_ending_ = false;
  bool is_abandoned_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

Watchdog::Watchdog(const MpiComm& world, double deadline_s) {
  if (deadline_s > 0) thread_ = std::make_unique<Thread>(world, deadline_s);
}

Watchdog::~Watchdog() {
  if (thread_ == nullptr) return;
  const bool is_abandoned = std::uncaught_exceptions() > 0;
  thread_->end(is_abandoned);
  // A message may still be under way, from memory that has to stay.
  if (is_abandoned) static_cast<void>(thread_.release());
}

}  // namespace ssd
