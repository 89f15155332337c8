// Scaling of 8-bit RGB with the antialiased triangle filter ("bilinear" of Pillow and DALI: the filter grows
// with the scale when shrinking), from any rectangle of a picture, and in the same pass a flip and a change
// of colours. Within one level of Pillow's resize of the cut-out rectangle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "image/color.hpp"
#include "image/rgb_image.hpp"

namespace ssd {

struct ResizeOptions {
  bool is_flipped = false;                // left and right
  const ColorTransform* color = nullptr;  // of the scaled pixels; may be none
};

// Not thread safe (keeps its buffers): one for each thread.
class Resizer {
 public:
  // out: (height, width, 3), packed. Pixels outside the view are never read, so that a crop's edge is a
  // picture's edge. The same as scaling, then a flip, then apply_color.
  void resize(const RgbView& source, int width, int height, std::uint8_t* out,
              const ResizeOptions& options = {});

 private:
  // Output pixel (row or column) i is made of tap_count source pixels from first[i] on, with the weights from
  // i * tap_count on, which add up to 1 << 16. Taps beyond the filter, or the picture, have the weight 0.
  struct Filter {
    int tap_count = 0;
    std::vector<int> first;
    std::vector<std::uint32_t> weights;
    void make(int source_pixels, int output_pixels);
  };

  void spread_weights();
  void mix_rows(const RgbView& source, int out_row);

  Filter horizontal_;
  Filter vertical_;
  std::vector<std::uint16_t> spread_;      // weights of columns for the vectors of the horizontal pass
  std::vector<const std::uint8_t*> rows_;  // that make one output row
  std::vector<std::uint32_t> sums_;        // of a row made of many
  std::vector<std::uint16_t> row_;         // that row, of the source's width, in 1/256 of a level
  std::vector<std::uint8_t> scaled_;       // some rows of the output, before they are coloured
};

}  // namespace ssd
