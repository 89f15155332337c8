// A loop shared by a few threads. What the body does for one index must not depend on another.
#pragma once

#include <cstddef>
#include <functional>

namespace ssd {

// Calls body(0) ... body(count - 1), each once, begun in this order, on up to `threads` threads (the caller
// is one of them). After an exception no more indices are begun, and that of the lowest index is thrown when
// all threads have ended.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

}  // namespace ssd
