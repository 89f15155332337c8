// Memory that is used again: grows, and never clears what it has.
#pragma once

#include <cstddef>
#include <vector>

namespace ssd {

// `count` elements of the buffer, with whatever values.
template <class Value>
Value* grown(std::vector<Value>& buffer, std::size_t count) {
  if (buffer.size() < count) buffer.resize(count);
  return buffer.data();
}

}  // namespace ssd
