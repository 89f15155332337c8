#include "image/resize.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace ssd {
namespace {

// Fixed point: the weights of a tap add up to 1 << 14. Between the passes values keep 7 bits behind the point
// (255 << 7 fits 16 bits), so that only the last rounding counts.
constexpr int kWeightBits = 14;
constexpr int kBetweenBits = 7;
constexpr int kVerticalShift = kWeightBits - kBetweenBits;
constexpr int kHorizontalShift = kWeightBits + kBetweenBits;

// The loops that take the time. Weighted source rows are added up for one output row: long runs, the vertical pass
// first, since there are more source rows than output rows when shrinking.
__attribute__((target_clones("avx2", "default")))
void start_sums(const std::uint8_t* row, std::int32_t weight, std::size_t count, std::int32_t* __restrict sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] = (1 << (kVerticalShift - 1)) + weight * row[i];
}

__attribute__((target_clones("avx2", "default")))
void add_to_sums(const std::uint8_t* row, std::int32_t weight, std::size_t count, std::int32_t* __restrict sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += weight * row[i];
}

__attribute__((target_clones("avx2", "default")))
void add_two_to_sums(const std::uint8_t* row0, const std::uint8_t* row1, std::int32_t weight0, std::int32_t weight1,
                     std::size_t count, std::int32_t* __restrict sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += weight0 * row0[i] + weight1 * row1[i];
}

__attribute__((target_clones("avx2", "default")))
void finish_sums(const std::int32_t* sums, std::size_t count, std::int16_t* __restrict row) {
  for (std::size_t i = 0; i < count; ++i) row[i] = static_cast<std::int16_t>(sums[i] >> kVerticalShift);
}

}  // namespace

RgbView view_of(const RgbImage& image) {
  return {image.pixels.data(), image.width, image.height, static_cast<std::size_t>(image.width) * 3};
}

RgbView crop_of(const RgbView& view, const PixelRect& rect) {
  SSD_EXPECT(0 <= rect.left && rect.left < rect.right && rect.right <= view.width);
  SSD_EXPECT(0 <= rect.top && rect.top < rect.bottom && rect.bottom <= view.height);
  const std::size_t offset =
      static_cast<std::size_t>(rect.top) * view.row_bytes + static_cast<std::size_t>(rect.left) * 3;
  return {view.pixels + offset, rect.right - rect.left, rect.bottom - rect.top, view.row_bytes};
}

// A triangle of half width max(scale, 1) around each output pixel's centre, cut at the edges and normalised.
// Running sums are rounded, not single weights, so that the weights add up exactly.
void Resizer::Filter::make(int source_pixels, int output_pixels) {
  const double scale = static_cast<double>(source_pixels) / output_pixels;
  const double support = std::max(scale, 1.0);
  taps.resize(static_cast<std::size_t>(output_pixels));
  weights.clear();
  for (int out = 0; out < output_pixels; ++out) {
    const double centre = (out + 0.5) * scale;
    const int first = std::max(static_cast<int>(centre - support + 0.5), 0);
    const int last = std::min(static_cast<int>(centre + support + 0.5), source_pixels);
    const auto triangle = [&](int pixel) { return std::max(1.0 - std::abs(pixel + 0.5 - centre) / support, 0.0); };
    double total = 0;
    for (int pixel = first; pixel < last; ++pixel) total += triangle(pixel);

    taps[static_cast<std::size_t>(out)] = {first, last - first, weights.size()};
    double running = 0;
    std::int32_t given = 0;
    for (int pixel = first; pixel < last; ++pixel) {
      running += triangle(pixel);
      const auto rounded = static_cast<std::int32_t>(std::lround(running / total * (1 << kWeightBits)));
      weights.push_back(rounded - given);
      given = rounded;
    }
  }
}

void Resizer::resize(const RgbView& source, int width, int height, std::uint8_t* out) {
  SSD_EXPECT(source.width > 0 && source.height > 0 && width > 0 && height > 0);
  horizontal_.make(source.width, width);
  vertical_.make(source.height, height);
  const std::size_t row_values = static_cast<std::size_t>(source.width) * 3;
  sums_.resize(row_values);
  row_.resize(row_values + 1);  // pixels are read as four values

  for (const Tap& vertical : vertical_.taps) {
    const std::uint8_t* row = source.pixels + static_cast<std::size_t>(vertical.first) * source.row_bytes;
    const std::int32_t* weight = &vertical_.weights[vertical.offset];
    start_sums(row, weight[0], row_values, sums_.data());
    int tap = 1;
    for (; tap + 1 < vertical.count; tap += 2) {
      const std::uint8_t* next = row + static_cast<std::size_t>(tap) * source.row_bytes;
      add_two_to_sums(next, next + source.row_bytes, weight[tap], weight[tap + 1], row_values, sums_.data());
    }
    if (tap < vertical.count) {
      add_to_sums(row + static_cast<std::size_t>(tap) * source.row_bytes, weight[tap], row_values, sums_.data());
    }
    finish_sums(sums_.data(), row_values, row_.data());

    for (const Tap& horizontal : horizontal_.taps) {
      const std::int16_t* pixel = &row_[static_cast<std::size_t>(horizontal.first) * 3];
      const std::int32_t* column_weight = &horizontal_.weights[horizontal.offset];
      std::int32_t sum[4] = {};  // the fourth is the next pixel's red, so that four lanes do the work
      for (int i = 0; i < horizontal.count; ++i, pixel += 3) {
        for (int channel = 0; channel < 4; ++channel) sum[channel] += column_weight[i] * pixel[channel];
      }
      for (int channel = 0; channel < 3; ++channel) {
        *out++ = static_cast<std::uint8_t>((sum[channel] + (1 << (kHorizontalShift - 1))) >> kHorizontalShift);
      }
    }
  }
}

}  // namespace ssd
