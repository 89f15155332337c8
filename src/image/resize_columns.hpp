// The horizontal pass of Resizer: one row of the output out of a row that the vertical pass has made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/vector_unit.hpp"
#include "image/resize_filter.hpp"

namespace ssd {

class ColumnMixer {
 public:
  explicit ColumnMixer(VectorUnit unit) : unit_(unit) {}

  // Values behind the row that mix may read (and never uses), and bytes behind its output that it may write.
  static constexpr std::size_t kRowSlack = 64;
  static constexpr std::size_t kOutSlack = 32;

  // The filter must outlive the use.
  void prepare(const ResizeFilter& filter);
  // row: R G B values in 1/256 of a level. out: R G B levels.
  void mix(const std::uint16_t* row, std::uint8_t* out) const;

 private:
  void spread_over_pixels();
  void spread_over_blocks();
  template <int kTaps>
  void mix_few(const std::uint16_t* row, std::uint8_t* out) const;

  VectorUnit unit_;
  const ResizeFilter* filter_ = nullptr;
  std::vector<int> first_;              // source pixel of the first tap of each output pixel, or block
  std::vector<std::uint16_t> weights_;  // as the vectors want them
  std::size_t block_pixels_ = 0;        // output pixels of a block, which AVX-512 makes at once
  std::vector<std::uint16_t> places_;   // in its source values, of each of its 32 lanes
};

}  // namespace ssd
