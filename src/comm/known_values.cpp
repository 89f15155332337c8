#include "comm/known_values.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "comm/half.hpp"
#include "core/error.hpp"
#include "core/random.hpp"

namespace ssd {
namespace {

constexpr std::size_t kPeriod = 4093;      // the largest prime below 4096
constexpr std::size_t kPeriodsOfOwn = 64;  // so that a buffer is filled in pieces of about a megabyte
constexpr int kLargestValue = 16;

// Whole numbers from -kLargestValue to kLargestValue, the same wherever they are asked for.
std::vector<int> values_of(int rank) {
  RandomStream random(static_cast<std::uint64_t>(rank), RandomPurpose::test, 0, 0);
  std::vector<int> values(kPeriod);
  for (auto& value : values) value = static_cast<int>(random.below(2 * kLargestValue + 1)) - kLargestValue;
  return values;
}

// A sum of world_size values has up to log2(kLargestValue * world_size) bits, and the same after a division
// by a power of two; a type whose unit of rounding is 2^-p holds p bits.
double tolerance_of(WireType type, int world_size) {
  const double unit = type == WireType::float16 ? 0x1p-11 : 0x1p-24;
  const bool is_exact =
      std::has_single_bit(static_cast<unsigned>(world_size)) && kLargestValue * world_size * unit <= 1;
  return is_exact ? 0 : kLargestValue * world_size * unit;
}

}  // namespace

KnownValues::KnownValues(WireType type, int rank, int world_size, double prescale)
    : type_(type), tolerance_(tolerance_of(type, world_size)), averages_(kPeriod) {
  SSD_EXPECT(type == WireType::float16 || type == WireType::float32);
  for (int r = 0; r < world_size; ++r) {
    const auto values = values_of(r);
    for (std::size_t i = 0; i < kPeriod; ++i) averages_[i] += values[i];
  }
  for (auto& average : averages_) average /= world_size;

  const auto value_bytes = wire_type_bytes(type);
  own_.resize(kPeriodsOfOwn * kPeriod * value_bytes);
  const auto values = values_of(rank);
  for (std::size_t i = 0; i < kPeriodsOfOwn * kPeriod; ++i) {
    const auto value = static_cast<float>(values[i % kPeriod] * prescale);
    const auto half = float_to_half(value);
    const void* bits = type == WireType::float16 ? static_cast<const void*>(&half) : &value;
    std::memcpy(own_.data() + i * value_bytes, bits, value_bytes);
  }
}

std::size_t KnownValues::count_wrong(std::span<const std::byte> averages) const {
  const auto value_bytes = wire_type_bytes(type_);
  const auto count = averages.size() / value_bytes;
  std::vector<std::uint16_t> halves(kPeriod);
  std::vector<float> values(kPeriod);
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < count; at += kPeriod) {
    const auto in_piece = std::min(kPeriod, count - at);
    const auto* from = averages.data() + at * value_bytes;
    if (type_ == WireType::float16) {
      std::memcpy(halves.data(), from, in_piece * value_bytes);
      halves_to_floats(halves.data(), values.data(), in_piece);
    } else {
      std::memcpy(values.data(), from, in_piece * value_bytes);
    }
    for (std::size_t i = 0; i < in_piece; ++i) {
      const bool is_right = std::abs(values[i] - averages_[i]) <= tolerance_;  // false for NaN
      wrong += is_right ? 0 : 1;
    }
  }
  return wrong;
}

}  // namespace ssd
