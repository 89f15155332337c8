// Numbers to and from little-endian bytes.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

#include "core/error.hpp"

namespace ssd {

static_assert(std::endian::native == std::endian::little,
              "files are read and written as the memory has them");

template <std::integral T>
T load_little_endian(std::span<const std::byte> bytes, std::size_t offset) {
  SSD_EXPECT(offset <= bytes.size() && bytes.size() - offset >= sizeof(T));
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <std::integral T>
void append_little_endian(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

}  // namespace ssd
