#include "image/resize_filter.hpp"

#include <cmath>

namespace ssd {

// A triangle of half width max(scale, 1) around each output pixel's centre, cut at the edges and normalised.
// Running sums are rounded, not single weights, so that the weights add up exactly; pixels are within the
// promised level either way.
void ResizeFilter::make(int source_pixels, int output_pixels) {
  const double scale = static_cast<double>(source_pixels) / output_pixels;
  const double support = std::max(scale, 1.0), slope = 1 / support;
  tap_count = std::min(static_cast<int>(std::ceil(2 * support)), source_pixels);
  first.resize(static_cast<std::size_t>(output_pixels));
  weights.assign(first.size() * static_cast<std::size_t>(tap_count), 0);
  std::uint32_t* out_weights = weights.data();
  for (int out = 0; out < output_pixels; ++out, out_weights += tap_count) {
    const double centre = (out + 0.5) * scale;
    const int end = std::min(static_cast<int>(centre + support + 0.5), source_pixels);
    // Where the triangle ends on pixels' centres rounding may count both: no more than has weight. Seen with
    // no filter yet; it keeps the writes below within the row of weights.
    const int begin = std::max({static_cast<int>(centre - support + 0.5), 0, end - tap_count});
    const auto triangle = [&](int pixel) {
      return std::max(1 - std::abs(pixel + 0.5 - centre) * slope, 0.0);
    };
    double total = 0;
    for (int pixel = begin; pixel < end; ++pixel) total += triangle(pixel);

    // The last pixels' taps are a picture's as well.
    const int start = std::min(begin, source_pixels - tap_count);
    first[static_cast<std::size_t>(out)] = start;
    double running = 0;
    std::uint32_t given = 0;
    for (int pixel = begin; pixel < end; ++pixel) {
      running += triangle(pixel);
      const auto rounded = static_cast<std::uint32_t>(running / total * kWeightOne + 0.5);
      out_weights[pixel - start] = rounded - given;
      given = rounded;
    }
  }
}

void ResizeFilter::flip() {
  std::reverse(first.begin(), first.end());
  const auto at = [this](std::size_t pixel) {
    return weights.begin() + static_cast<std::ptrdiff_t>(pixel * static_cast<std::size_t>(tap_count));
  };
  for (std::size_t i = 0, j = first.size() - 1; i < j; ++i, --j) std::swap_ranges(at(i), at(i + 1), at(j));
}

}  // namespace ssd
