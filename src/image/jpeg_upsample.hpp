// Rows of pixels out of rows of Y, Cb and Cr, for jpeg_segments.cpp alone: libjpeg-turbo's "fancy" (triangle)
// upsampling and its colour conversion, number by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ssd {

// Chroma levels for each level of luma, 1 or 2 in each direction: 2 means that chroma has half the columns
// or rows.
struct ChromaScale {
  int horizontal = 1;
  int vertical = 1;
};

// Levels behind the ones asked for that are read and written.
inline constexpr std::size_t kLevelSlack = 64;

// Full rows of one chroma component. Not thread safe: keeps a buffer.
class ChromaUpsampler {
 public:
  // Levels of columns [first, first + count) of chroma become those of the pixels from first * horizontal on,
  // in `out`. near, far: the row of chroma that the row of pixels lies in, and the one beside it on the row's
  // own side (the same where the picture ends); both hold the picture's columns [begin, end). is_lower: of
  // two rows of pixels in a row of chroma the lower one. A pixel at an end of [begin, end) is right where the
  // picture ends there, or where its level lies on the other side.
  void widen(const std::uint8_t* near, const std::uint8_t* far, const ChromaScale& scale, bool is_lower,
             std::size_t begin, std::size_t end, std::size_t first, std::size_t count, std::uint8_t* out);

 private:
  std::vector<std::uint16_t> sums_;
};

// `count` pixels R G B. Reads and writes up to kLevelSlack levels of each kind behind them.
void color_row(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red, std::size_t count,
               std::uint8_t* out);
// The same for a gray picture.
void gray_row(const std::uint8_t* luma, std::size_t count, std::uint8_t* out);

}  // namespace ssd
