// Work on items in threads, results taken in the items' order by the calling thread: the outcome does not
// depend on the number of threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace ssd {

struct OrderedParallelOptions {
  unsigned threads = 1;
  std::size_t window = 8;  // results that may wait at a time: what bounds the memory
};

// make(worker, i) -> Result runs in the threads for i in [0, count), each with a Worker of its own;
// take(i, Result&&) runs in the calling thread for i = 0, 1, ... An exception of either ends the work and
// leaves here, after all threads have ended.
template <class Worker, class Result, class Make, class Take>
void ordered_parallel(std::size_t count, OrderedParallelOptions options, Make make, Take take) {
  struct Slot {
    std::optional<Result> result;
    std::exception_ptr error;
  };
  std::vector<Slot> slots(options.window);
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t next_to_make = 0;
  std::size_t next_to_take = 0;
  bool is_stopped = false;

  const auto work = [&] {
    Worker worker;
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] {
        return is_stopped || next_to_make >= count || next_to_make < next_to_take + options.window;
      });
      if (is_stopped || next_to_make >= count) return;
      const auto i = next_to_make++;
      lock.unlock();
      Slot made;
      try {
        made.result.emplace(make(worker, i));
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      slots[i % options.window] = std::move(made);
      changed.notify_all();
    }
  };

  std::vector<std::jthread> threads;
  const auto stop = [&] {
    const std::lock_guard lock(mutex);
    is_stopped = true;
    changed.notify_all();
  };
  try {
    for (unsigned t = 0; t < options.threads; ++t) threads.emplace_back(work);
    for (std::size_t i = 0; i < count; ++i) {
      std::unique_lock lock(mutex);
      auto& slot = slots[i % options.window];
      changed.wait(lock, [&] { return slot.result || slot.error; });
      auto made = std::exchange(slot, {});
      next_to_take = i + 1;
      changed.notify_all();
      lock.unlock();
      if (made.error) std::rethrow_exception(made.error);
      take(i, std::move(*made.result));
    }
  } catch (...) {
    stop();
    throw;
  }
}

}  // namespace ssd
