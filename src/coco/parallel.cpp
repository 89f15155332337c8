#include "coco/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace ssd {

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> has_failed = false;
  std::mutex mutex;
  std::size_t failed_index = 0;
  std::exception_ptr failure;
  const auto work = [&] {
    for (;;) {
      const auto i = next.fetch_add(1);
      if (i >= count || has_failed) return;
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (failure == nullptr || i < failed_index) {
          failure = std::current_exception();
          failed_index = i;
        }
        has_failed = true;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    const auto wanted = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
    for (std::size_t i = 1; i < wanted; ++i) helpers.emplace_back(work);
    work();
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace ssd
