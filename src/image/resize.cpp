#include "image/resize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.hpp"

namespace ssd {
namespace {

// Fixed point: the weights of an output pixel add up to 1 << 14. Between the passes values keep 7 bits behind
// the point, so that only the last rounding counts; 255 << (14 + 7) fits 32 bits.
constexpr int kWeightBits = 14;
constexpr int kBetweenBits = 7;
constexpr int kVerticalShift = kWeightBits - kBetweenBits;
constexpr int kHorizontalShift = kWeightBits + kBetweenBits;

constexpr std::int32_t kVerticalHalf = 1 << (kVerticalShift - 1);
constexpr std::int32_t kHorizontalHalf = 1 << (kHorizontalShift - 1);

// The loops that take the time, each made for plain x86-64 and for AVX2. The vertical pass comes first: it
// works on long runs, and there are more source rows than output rows when shrinking. Four rows at once.
using FourRows = const std::uint8_t* const*;

inline std::int32_t weighted(FourRows rows, const std::int32_t* weights, std::size_t i) {
  return weights[0] * rows[0][i] + weights[1] * rows[1][i] + weights[2] * rows[2][i] +
         weights[3] * rows[3][i];
}

__attribute__((target_clones("avx2", "default"))) void mix_four_rows(FourRows rows,
                                                                     const std::int32_t* weights,
                                                                     std::size_t count,
                                                                     std::int32_t* __restrict out) {
  for (std::size_t i = 0; i < count; ++i)
    out[i] = (kVerticalHalf + weighted(rows, weights, i)) >> kVerticalShift;
}

__attribute__((target_clones("avx2", "default"))) void add_four_rows(FourRows rows,
                                                                     const std::int32_t* weights,
                                                                     std::size_t count,
                                                                     std::int32_t* __restrict sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += weighted(rows, weights, i);
}

__attribute__((target_clones("avx2", "default"))) void round_sums(std::size_t count, std::int32_t* sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] = (kVerticalHalf + sums[i]) >> kVerticalShift;
}

// One output row out of a row of the source's width. Pixels are read as four values, the fourth being the
// next pixel's red, so that four lanes do the work.
__attribute__((always_inline)) inline void mix_columns_of(int tap_count, const std::int32_t* row,
                                                          const int* first, const std::int32_t* weights,
                                                          int width, std::uint8_t* __restrict out) {
  typedef std::int32_t FourInts __attribute__((vector_size(16)));
  for (int column = 0; column < width; ++column, weights += tap_count) {
    const std::int32_t* pixel = row + static_cast<std::ptrdiff_t>(first[column]) * 3;
    FourInts sum = {kHorizontalHalf, kHorizontalHalf, kHorizontalHalf, kHorizontalHalf};
    for (int tap = 0; tap < tap_count; ++tap) {
      FourInts values;
      std::memcpy(&values, pixel + tap * 3, sizeof values);
      sum += values * weights[tap];
    }
    sum >>= kHorizontalShift;
    *out++ = static_cast<std::uint8_t>(sum[0]);
    *out++ = static_cast<std::uint8_t>(sum[1]);
    *out++ = static_cast<std::uint8_t>(sum[2]);
  }
}

// The usual numbers of taps as constants: their inner loops unroll.
__attribute__((target_clones("avx2", "default"))) void mix_columns(const std::int32_t* row, const int* first,
                                                                   const std::int32_t* weights, int tap_count,
                                                                   int width, std::uint8_t* out) {
  switch (tap_count) {
    case 2:
      return mix_columns_of(2, row, first, weights, width, out);
    case 3:
      return mix_columns_of(3, row, first, weights, width, out);
    case 4:
      return mix_columns_of(4, row, first, weights, width, out);
    default:
      return mix_columns_of(tap_count, row, first, weights, width, out);
  }
}

}  // namespace

// A triangle of half width max(scale, 1) around each output pixel's centre, cut at the edges and normalised.
// Running sums are rounded, not single weights, so that the weights add up exactly.
void Resizer::Filter::make(int source_pixels, int output_pixels, int tap_step) {
  const double scale = static_cast<double>(source_pixels) / output_pixels;
  const double support = std::max(scale, 1.0);
  const int most_taps = std::min(static_cast<int>(std::ceil(2 * support)), source_pixels);
  tap_count = (most_taps + tap_step - 1) / tap_step * tap_step;
  first.resize(static_cast<std::size_t>(output_pixels));
  weights.assign(first.size() * static_cast<std::size_t>(tap_count), 0);
  std::int32_t* out_weights = weights.data();
  for (int out = 0; out < output_pixels; ++out, out_weights += tap_count) {
    const double centre = (out + 0.5) * scale;
    const int begin = std::max(static_cast<int>(centre - support + 0.5), 0);
    const int end = std::min(static_cast<int>(centre + support + 0.5), source_pixels);
    const auto triangle = [&](int pixel) {
      return std::max(1.0 - std::abs(pixel + 0.5 - centre) / support, 0.0);
    };
    double total = 0;
    for (int pixel = begin; pixel < end; ++pixel) total += triangle(pixel);

    SSD_EXPECT(end - begin <= tap_count);
    first[static_cast<std::size_t>(out)] = begin;
    double running = 0;
    std::int32_t given = 0;
    for (int pixel = begin; pixel < end; ++pixel) {
      running += triangle(pixel);
      const auto rounded = static_cast<std::int32_t>(std::lround(running / total * (1 << kWeightBits)));
      out_weights[pixel - begin] = rounded - given;
      given = rounded;
    }
  }
}

void Resizer::resize(const RgbView& source, int width, int height, std::uint8_t* out) {
  SSD_EXPECT(source.width > 0 && source.height > 0 && width > 0 && height > 0);
  horizontal_.make(source.width, width, 1);
  vertical_.make(source.height, height, 4);
  const std::size_t row_values = static_cast<std::size_t>(source.width) * 3;
  row_.resize(row_values + static_cast<std::size_t>(horizontal_.tap_count) * 3 +
              1);  // taps of weight 0 read beyond
  rows_.resize(static_cast<std::size_t>(vertical_.tap_count));

  for (int out_row = 0; out_row < height; ++out_row) {
    for (int tap = 0; tap < vertical_.tap_count; ++tap) {
      const int row = std::min(vertical_.first[static_cast<std::size_t>(out_row)] + tap, source.height - 1);
      rows_[static_cast<std::size_t>(tap)] = source.pixels + static_cast<std::size_t>(row) * source.row_bytes;
    }
    const std::int32_t* weights = &vertical_.weights[static_cast<std::size_t>(out_row) * rows_.size()];
    if (rows_.size() == 4) {
      mix_four_rows(rows_.data(), weights, row_values, row_.data());
    } else {
      std::fill_n(row_.begin(), row_values, 0);
      for (std::size_t i = 0; i < rows_.size(); i += 4)
        add_four_rows(&rows_[i], weights + i, row_values, row_.data());
      round_sums(row_values, row_.data());
    }
    mix_columns(row_.data(), horizontal_.first.data(), horizontal_.weights.data(), horizontal_.tap_count,
                width, out);
    out += static_cast<std::size_t>(width) * 3;
  }
}

}  // namespace ssd
