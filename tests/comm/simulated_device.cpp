#include "comm/simulated_device.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ssd::test {
namespace {

CallResult invalid_handle() {
  return {CallCode::failed, "invalid resource handle"};
}

}  // namespace

SimulatedDevice::~SimulatedDevice() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

CallResult SimulatedDevice::create_stream(void** stream) {
  const std::lock_guard lock(mutex_);
  auto made = std::make_shared<Stream>();
  made->index = next_stream_++;
  made->clocks.resize(next_stream_);
  *stream = made.get();
  streams_[*stream] = std::move(made);
  return {};
}

CallResult SimulatedDevice::destroy_stream(void* stream) {
  const std::lock_guard lock(mutex_);
  if (stream_of(stream) == nullptr) return invalid_handle();
  streams_.erase(stream);
  return {};
}

CallResult SimulatedDevice::create_event(void** event) {
  const std::lock_guard lock(mutex_);
  auto made = std::make_unique<Event>();
  *event = made.get();
  events_[*event] = std::move(made);
  return {};
}

CallResult SimulatedDevice::destroy_event(void* event) {
  const std::lock_guard lock(mutex_);
  if (event_of(event) == nullptr) return invalid_handle();
  events_.erase(event);
  return {};
}

CallResult SimulatedDevice::record(void* event, void* stream) {
  const std::lock_guard lock(mutex_);
  auto* at = event_of(event);
  auto* on = stream_of(stream);
  if (at == nullptr || on == nullptr) return invalid_handle();
  at->last = std::make_shared<Recording>();
  at->last->clocks = on->clocks;
  on->tasks.push_back([recording = at->last] {
    recording->is_reached = true;
    return true;
  });
  changed_.notify_all();
  return {};
}

CallResult SimulatedDevice::query(void* event) {
  const std::lock_guard lock(mutex_);
  const auto* at = event_of(event);
  if (at == nullptr) return invalid_handle();
  if (at->last != nullptr && !at->last->is_reached) return {CallCode::in_progress, {}};
  return {};
}

CallResult SimulatedDevice::wait(void* stream, void* event) {
  const std::lock_guard lock(mutex_);
  const auto* at = event_of(event);
  auto* on = stream_of(stream);
  if (at == nullptr || on == nullptr) return invalid_handle();
  if (at->last == nullptr) {
    break_rule_locked("a stream waits for an event that was never recorded");
    return {};
  }
  const auto& behind = at->last->clocks;
  on->clocks.resize(std::max(on->clocks.size(), behind.size()));
  for (std::size_t i = 0; i < behind.size(); ++i) on->clocks[i] = std::max(on->clocks[i], behind[i]);
  on->tasks.push_back([recording = at->last] { return recording->is_reached.load(); });
  changed_.notify_all();
  return {};
}

CallResult SimulatedDevice::launch(void* stream, const void* buffer, Use use, Task task) {
  const std::lock_guard lock(mutex_);
  auto* on = stream_of(stream);
  if (on == nullptr) return invalid_handle();
  if (const auto last = last_write_.find(buffer); last != last_write_.end()) {
    const auto [other, tick] = last->second;
    if (other >= on->clocks.size() || on->clocks[other] < tick) {
      break_rule_locked("a buffer is used without a wait for the stream that writes it");
    }
  }
  const auto tick = ++on->clocks[on->index];
  if (use == Use::write) last_write_[buffer] = {on->index, tick};
  on->tasks.push_back(std::move(task));
  changed_.notify_all();
  return {};
}

void SimulatedDevice::synchronize(void* stream) {
  std::unique_lock lock(mutex_);
  const auto* on = stream_of(stream);
  changed_.wait(lock, [&] { return on == nullptr || on->tasks.empty(); });
}

void SimulatedDevice::break_rule(std::string rule) {
  const std::lock_guard lock(mutex_);
  break_rule_locked(std::move(rule));
}

std::vector<std::string> SimulatedDevice::broken_rules() const {
  const std::lock_guard lock(mutex_);
  return broken_rules_;
}

std::size_t SimulatedDevice::stream_count() const {
  const std::lock_guard lock(mutex_);
  return streams_.size();
}

std::size_t SimulatedDevice::event_count() const {
  const std::lock_guard lock(mutex_);
  return events_.size();
}

SimulatedDevice::Stream* SimulatedDevice::stream_of(void* handle) {
  const auto at = streams_.find(handle);
  if (at != streams_.end()) return at->second.get();
  break_rule_locked("there is no such stream");
  return nullptr;
}

SimulatedDevice::Event* SimulatedDevice::event_of(void* handle) {
  const auto at = events_.find(handle);
  if (at != events_.end()) return at->second.get();
  break_rule_locked("there is no such event");
  return nullptr;
}

// Tries the first task of every stream, without the lock; sleeps a little where none has ended.
void SimulatedDevice::run() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    std::vector<std::shared_ptr<Stream>> busy;
    for (const auto& [handle, stream] : streams_) {
      if (!stream->tasks.empty()) busy.push_back(stream);
    }
    if (busy.empty()) {
      changed_.wait(lock);
      continue;
    }
    bool has_ended = false;
    for (const auto& stream : busy) {
      auto& task =
          stream->tasks.front();  // a deque's elements stay where they are while others are added behind
      lock.unlock();
      const bool is_done = task();
      lock.lock();
      if (is_done) stream->tasks.pop_front();
      has_ended = has_ended || is_done;
    }
    if (has_ended) {
      changed_.notify_all();
    } else {
      changed_.wait_for(lock, std::chrono::microseconds(100));
    }
  }
}

}  // namespace ssd::test
