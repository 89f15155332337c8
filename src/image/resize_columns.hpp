// The horizontal pass of Resizer: one row of the output out of a row that the vertical pass has made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "image/resize_filter.hpp"

namespace ssd {

// A filter of few taps, laid out for the vector unit.
struct ColumnPlan {
  std::vector<int> first;              // source pixel of the first tap of each output pixel, or group
  std::vector<std::uint16_t> weights;  // in the order in which vectors take them
  std::size_t group_pixels = 0;        // AVX-512: output pixels of a group
  std::vector<std::uint16_t> places;   // AVX-512: of each lane of a group, in the group's source values
};

class ColumnMixer {
 public:
  // Values behind the row that mix may read (and never uses), and bytes behind its output that it may write.
  static constexpr std::size_t kRowSlack = 64;
  static constexpr std::size_t kOutSlack = 32;

  // The filter must outlive the use.
  void prepare(const ResizeFilter& filter);
  // row: R G B values in 1/256 of a level. out: R G B levels.
  void mix(const std::uint16_t* row, std::uint8_t* out) const;

 private:
  const ResizeFilter* filter_ = nullptr;
  ColumnPlan plan_;
};

}  // namespace ssd
