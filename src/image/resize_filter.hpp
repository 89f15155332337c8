// The antialiased triangle filter of Resizer along one axis, in fixed point.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ssd {

// Weights are in 1/65536, levels between the two passes in 1/256. A product's upper half is what both passes
// add up; what is cut off is less than 1/256 of a level for each tap, so that filters of few taps lose
// nothing that counts. Filters of more taps (pictures that shrink to a third or less) add whole products.
inline constexpr int kWeightOne = 1 << 16;
inline constexpr int kFewTaps = 6;

constexpr std::uint16_t upper_half(std::uint16_t a, std::uint16_t b) {
  return static_cast<std::uint16_t>((std::uint32_t{a} * b) >> 16);
}

// A weight of 1, which has no neighbours, loses 1/65536.
constexpr std::uint16_t short_weight(std::uint32_t weight) {
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(weight, kWeightOne - 1));
}

// Output pixel (row or column) i is made of tap_count source pixels from first[i] on, with the weights from
// i * tap_count on, which add up to kWeightOne. Taps beyond the filter, or the picture, have the weight 0.
struct ResizeFilter {
  int tap_count = 0;
  std::vector<int> first;
  std::vector<std::uint32_t> weights;

  // May be called again and again, and keeps its memory.
  void make(int source_pixels, int output_pixels);
  // The output's order is turned round.
  void flip();
};

}  // namespace ssd
