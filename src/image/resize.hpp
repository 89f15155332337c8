// Scaling of 8-bit RGB with the antialiased triangle filter ("bilinear" of Pillow and DALI: the filter grows
// with the scale when shrinking), from any rectangle of a picture. Within one level of Pillow's resize of the
// cut-out rectangle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "image/jpeg.hpp"

namespace ssd {

// Pixels that someone else owns: a whole picture, or a rectangle of one.
struct RgbView {
  const std::uint8_t* pixels = nullptr;  // (height, width, 3) R G B, rows row_bytes apart
  int width = 0;
  int height = 0;
  std::size_t row_bytes = 0;
};

// The image must outlive the view.
RgbView view_of(const RgbImage& image);

// A rectangle of whole pixels: right and bottom are the first column and row outside.
struct PixelRect {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
  friend bool operator==(const PixelRect&, const PixelRect&) = default;
};

// Throws ContractError for an empty rectangle or one that leaves the picture.
RgbView crop_of(const RgbView& view, const PixelRect& rect);

// Not thread safe (keeps its buffers): one for each thread.
class Resizer {
 public:
  // out: (height, width, 3), packed. Pixels outside the view are never read, so that a crop's edge is a
  // picture's edge.
  void resize(const RgbView& source, int width, int height, std::uint8_t* out);

 private:
  // Output pixel (row or column) i is made of tap_count source pixels from first[i] on, with the weights from
  // i * tap_count on, which add up to 1 << kWeightBits. Taps beyond the filter, or the picture, have the
  // weight 0.
  struct Filter {
    int tap_count = 0;
    std::vector<int> first;
    std::vector<std::int32_t> weights;
    // tap_count: the least that serves, rounded up to a multiple of tap_step.
    void make(int source_pixels, int output_pixels, int tap_step);
  };

  Filter horizontal_;
  Filter vertical_;
  std::vector<const std::uint8_t*> rows_;  // that make one output row
  std::vector<std::int32_t> row_;          // that row, still of the source's width
};

}  // namespace ssd
