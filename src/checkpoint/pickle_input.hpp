// The bytes of a pickle, taken from the front; every take is checked against the end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/little_endian.hpp"
#include "core/error.hpp"

namespace ssd {

class PickleInput {
 public:
  explicit PickleInput(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t position() const { return position_; }

  std::string_view take(std::uint64_t count) {
    SSD_VALIDATE(count <= bytes_.size() - position_, "the pickle is cut short: {} bytes expected at byte {}",
                 count, position_);
    const std::string_view taken(reinterpret_cast<const char*>(bytes_.data()) + position_, count);
    position_ += count;
    return taken;
  }

  template <std::integral T>
  T number() {
    return load_little_endian<T>(std::as_bytes(std::span(take(sizeof(T)))), 0);
  }

  double big_endian_double() {
    std::uint64_t bits = 0;
    for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
    return std::bit_cast<double>(bits);
  }

  // Up to the end of the line, which is taken too.
  std::string_view line() {
    constexpr std::size_t kLongestLine = 256;  // a module or a name
    const auto rest = std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size())
                          .substr(position_, kLongestLine);
    const auto length = rest.find('\n');
    SSD_VALIDATE(length != std::string_view::npos, "a name of the pickle does not end (byte {})", position_);
    position_ += length + 1;
    return rest.substr(0, length);
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace ssd
