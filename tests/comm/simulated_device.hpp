// Streams and events of a GPU in host memory. A stream is a queue of tasks that a thread of the device works
// off in order, side by side with those of other streams. CUDA's rules are checked where they are broken, not
// by luck: every operation on a stream has its place in a happens-before order made by events and waits
// (vector clocks), so that a wait that is missing is found in every run. All members may be called from any
// thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/nccl_functions.hpp"

namespace ssd::test {

class SimulatedDevice {
 public:
  using Task = std::function<bool()>;  // true once it has ended; called again and again until then

  SimulatedDevice() : thread_([this] { run(); }) {}
  ~SimulatedDevice();  // leaves undone what has not ended

  CallResult create_stream(void** stream);
  CallResult destroy_stream(void* stream);
  CallResult create_event(void** event);
  CallResult destroy_event(void* event);
  CallResult record(void* event, void* stream);
  CallResult query(void* event);
  CallResult wait(void* stream, void* event);

  // Queues a task on a stream. It may read the buffer, or write it too, once everything that was queued to
  // write it before has happened before: else a rule is broken.
  enum class Use { read, write };
  CallResult launch(void* stream, const void* buffer, Use use, Task task);
  void synchronize(void* stream);  // waits until all of its tasks have ended

  void break_rule(std::string rule);
  std::vector<std::string> broken_rules() const;
  std::size_t stream_count() const;
  std::size_t event_count() const;

 private:
  // Of each stream: up to which of its operations everything has happened before.
  using Clocks = std::vector<std::uint64_t>;
  struct Stream {
    std::size_t index = 0;
    Clocks clocks;
    std::deque<Task> tasks;
  };
  // One recording of an event: what it stands behind, and whether the stream has come to it.
  struct Recording {
    Clocks clocks;
    std::atomic<bool> is_reached = false;
  };
  struct Event {
    std::shared_ptr<Recording> last;  // null: never recorded
  };
  struct Operation {
    std::size_t stream;
    std::uint64_t tick;
  };

  void break_rule_locked(std::string rule) { broken_rules_.push_back(std::move(rule)); }
  Stream* stream_of(void* handle);
  Event* event_of(void* handle);
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  std::size_t next_stream_ = 0;
  std::map<void*, std::shared_ptr<Stream>> streams_;
  std::map<void*, std::unique_ptr<Event>> events_;
  std::map<const void*, Operation> last_write_;
  std::vector<std::string> broken_rules_;
  std::thread thread_;
};

}  // namespace ssd::test
