// Scaling of 8-bit RGB with the antialiased triangle filter ("bilinear" of Pillow and DALI: the filter grows
// with the scale when shrinking), from any rectangle of a picture. Within one level of Pillow's resize of the
// cut-out rectangle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "image/rgb_image.hpp"

namespace ssd {

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
