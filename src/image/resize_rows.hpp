// The vertical pass of Resizer: one output row out of some source rows. It comes before the horizontal one,
// since it works on long runs and there are more source rows than output rows when shrinking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ssd {

// Not thread safe (keeps a buffer).
class RowMixer {
 public:
  // rows: tap_count of them, each of `count` levels. weights: of ResizeFilter. out: `count` values in 1/256
  // of a level.
  void mix(const std::uint8_t* const* rows, const std::uint32_t* weights, int tap_count, std::size_t count,
           std::uint16_t* out);

 private:
  std::vector<std::uint32_t> sums_;  // of many rows
};

}  // namespace ssd
