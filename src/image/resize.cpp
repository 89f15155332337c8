#include "image/resize.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.hpp"
#include "core/vector_clones.hpp"

namespace ssd {
namespace {

// Fixed point: weights are in 1/65536, levels between the passes in 1/256. A product's upper half is what
// both passes add up; what is cut off is less than 1/256 of a level for each tap, so that filters of few taps
// lose nothing that counts. Filters of more taps (pictures that shrink to a third or less) add whole
// products.
constexpr int kWeightOne = 1 << 16;
constexpr int kFewTaps = 6;

// Output rows that go on to their colours together: what the horizontal pass has just written pixel by pixel
// cannot yet be read again in whole vectors.
constexpr int kRowsTogether = 8;

constexpr std::uint16_t upper_half(std::uint16_t a, std::uint16_t b) {
  return static_cast<std::uint16_t>((std::uint32_t{a} * b) >> 16);
}

// A weight of 1, which has no neighbours, loses 1/65536.
constexpr std::uint16_t short_weight(std::uint32_t weight) {
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(weight, kWeightOne - 1));
}

using Rows = const std::uint8_t* const*;

template <int kTaps>
SSD_INLINE void mix_rows_of(Rows rows, const std::uint32_t* weights, std::size_t count,
                            std::uint16_t* __restrict out) {
  std::uint16_t own[kTaps];
  const std::uint8_t* row[kTaps];
  for (int tap = 0; tap < kTaps; ++tap) {
    own[tap] = short_weight(weights[tap]);
    row[tap] = rows[tap];
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t sum = 0;
    for (int tap = 0; tap < kTaps; ++tap) {
      const auto level = static_cast<std::uint16_t>(row[tap][i] << 8);
      sum = static_cast<std::uint16_t>(sum + upper_half(level, own[tap]));
    }
    out[i] = sum;
  }
}

// The vertical pass comes first: it works on long runs, and there are more source rows than output rows when
// shrinking.
SSD_VECTOR_CLONES void mix_few_rows(Rows rows, const std::uint32_t* weights, int tap_count, std::size_t count,
                                    std::uint16_t* __restrict out) {
  switch (tap_count) {
    case 1:
      return mix_rows_of<1>(rows, weights, count, out);
    case 2:
      return mix_rows_of<2>(rows, weights, count, out);
    case 3:
      return mix_rows_of<3>(rows, weights, count, out);
    case 4:
      return mix_rows_of<4>(rows, weights, count, out);
    case 5:
      return mix_rows_of<5>(rows, weights, count, out);
    default:
      return mix_rows_of<kFewTaps>(rows, weights, count, out);
  }
}

SSD_VECTOR_CLONES void add_row(const std::uint8_t* row, std::uint32_t weight, std::size_t count,
                               std::uint32_t* __restrict sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += weight * row[i];
}

SSD_VECTOR_CLONES void round_sums(const std::uint32_t* sums, std::size_t count,
                                  std::uint16_t* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint16_t>((sums[i] + 128) >> 8);
}

// Two pixels and a bit of the third: R G B R G B, and two values of weight 0.
constexpr int kLanes = 8;
constexpr int kPixelsInVector = 2;

// The sum of `vectors` times their weights, brought to levels: R, G, B and anything in the lowest bytes.
#if defined(__SSE2__)
template <int kVectors>
SSD_INLINE std::uint32_t mixed_pixel(const std::uint16_t* values, const std::uint16_t* weights) {
  const auto load = [](const std::uint16_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  };
  __m128i sum = _mm_mulhi_epu16(load(values), load(weights));
  for (int i = 1; i < kVectors; ++i) {
    sum = _mm_add_epi16(sum,
                        _mm_mulhi_epu16(load(values + i * kPixelsInVector * 3), load(weights + i * kLanes)));
  }
  sum = _mm_add_epi16(sum, _mm_srli_si128(sum, 6));  // the second pixels onto the first
  sum = _mm_srli_epi16(_mm_add_epi16(sum, _mm_set1_epi16(128)), 8);
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_packus_epi16(sum, sum)));
}
#else
template <int kVectors>
SSD_INLINE std::uint32_t mixed_pixel(const std::uint16_t* values, const std::uint16_t* weights) {
  std::uint32_t pixel = 0;
  for (int channel = 0; channel < 3; ++channel) {
    std::uint32_t sum = 128;
    for (int tap = 0; tap < kVectors * kPixelsInVector; ++tap) {
      const int lane = tap / kPixelsInVector * kLanes + tap % kPixelsInVector * 3 + channel;
      sum += upper_half(values[tap * 3 + channel], weights[lane]);
    }
    pixel |= sum >> 8 << 8 * channel;
  }
  return pixel;
}
#endif

struct Columns {
  const int* first;
  const std::uint16_t* weights;  // kVectors vectors for each
  int count;
  int step;  // from one output pixel to the next: 1, or -1 for a flip, from the last on
};

// Writes one byte behind the row.
template <int kVectors>
SSD_INLINE void mix_columns_of(const std::uint16_t* row, const Columns columns, std::uint8_t* out) {
  const std::ptrdiff_t start = columns.step > 0 ? 0 : columns.count - 1, step = columns.step;
  const int* first = columns.first + start;
  const std::uint16_t* weights = columns.weights + start * kVectors * kLanes;
  for (int i = 0; i < columns.count; ++i, first += step, weights += step * kVectors * kLanes, out += 3) {
    const std::uint32_t pixel = mixed_pixel<kVectors>(row + std::ptrdiff_t{*first} * 3, weights);
    for (int byte = 0; byte < 4; ++byte) out[byte] = static_cast<std::uint8_t>(pixel >> 8 * byte);
  }
}

SSD_VECTOR_CLONES void mix_few_columns(const std::uint16_t* row, const Columns& columns, int vectors,
                                       std::uint8_t* out) {
  switch (vectors) {
    case 1:
      return mix_columns_of<1>(row, columns, out);
    case 2:
      return mix_columns_of<2>(row, columns, out);
    default:
      return mix_columns_of<3>(row, columns, out);
  }
}

void mix_many_columns(const std::uint16_t* row, const std::uint32_t* weights, int tap_count,
                      const Columns& columns, std::uint8_t* out) {
  std::ptrdiff_t column = columns.step > 0 ? 0 : columns.count - 1;
  for (int i = 0; i < columns.count; ++i, column += columns.step, out += 3) {
    const std::uint16_t* pixel = row + std::ptrdiff_t{columns.first[column]} * 3;
    const std::uint32_t* own = weights + column * tap_count;
    for (int channel = 0; channel < 3; ++channel) {
      std::uint32_t sum = 1U << 23;  // 65280 * 65536 + this fits
      for (int tap = 0; tap < tap_count; ++tap) sum += own[tap] * pixel[tap * 3 + channel];
      out[channel] = static_cast<std::uint8_t>(sum >> 24);
    }
  }
}

}  // namespace

// A triangle of half width max(scale, 1) around each output pixel's centre, cut at the edges and normalised.
// Running sums are rounded, not single weights, so that the weights add up exactly.
void Resizer::Filter::make(int source_pixels, int output_pixels) {
  const double scale = static_cast<double>(source_pixels) / output_pixels;
  const double support = std::max(scale, 1.0), slope = 1 / support;
  tap_count = std::min(static_cast<int>(std::ceil(2 * support)), source_pixels);
  first.resize(static_cast<std::size_t>(output_pixels));
  weights.assign(first.size() * static_cast<std::size_t>(tap_count), 0);
  std::uint32_t* out_weights = weights.data();
  for (int out = 0; out < output_pixels; ++out, out_weights += tap_count) {
    const double centre = (out + 0.5) * scale;
    const int begin = std::max(static_cast<int>(centre - support + 0.5), 0);
    const int end = std::min(static_cast<int>(centre + support + 0.5), source_pixels);
    const auto triangle = [&](int pixel) {
      return std::max(1 - std::abs(pixel + 0.5 - centre) * slope, 0.0);
    };
    double total = 0;
    for (int pixel = begin; pixel < end; ++pixel) total += triangle(pixel);

    SSD_EXPECT(end - begin <= tap_count);
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

// R, G and B of a pixel have the same weight, two pixels to a vector.
void Resizer::spread_weights() {
  const auto taps = static_cast<std::size_t>(horizontal_.tap_count);
  const std::size_t vectors = (taps + kPixelsInVector - 1) / kPixelsInVector;
  spread_.assign(horizontal_.first.size() * vectors * kLanes, 0);
  for (std::size_t column = 0; column < horizontal_.first.size(); ++column) {
    for (std::size_t tap = 0; tap < taps; ++tap) {
      const auto at = (column * vectors + tap / kPixelsInVector) * kLanes + tap % kPixelsInVector * 3;
      std::fill_n(spread_.begin() + static_cast<std::ptrdiff_t>(at), 3,
                  short_weight(horizontal_.weights[column * taps + tap]));
    }
  }
}

// One row of row_, of the output's height and the source's width.
void Resizer::mix_rows(const RgbView& source, int out_row) {
  const std::size_t value_count = static_cast<std::size_t>(source.width) * 3;
  const int taps = vertical_.tap_count;
  const auto first = static_cast<std::size_t>(vertical_.first[static_cast<std::size_t>(out_row)]);
  const std::uint32_t* weights = &vertical_.weights[static_cast<std::size_t>(out_row * taps)];
  for (std::size_t tap = 0; tap < rows_.size(); ++tap)
    rows_[tap] = source.pixels + (first + tap) * source.row_bytes;
  if (taps <= kFewTaps) return mix_few_rows(rows_.data(), weights, taps, value_count, row_.data());
  sums_.assign(value_count, 0);
  for (std::size_t tap = 0; tap < rows_.size(); ++tap)
    add_row(rows_[tap], weights[tap], value_count, sums_.data());
  round_sums(sums_.data(), value_count, row_.data());
}

void Resizer::resize(const RgbView& source, int width, int height, std::uint8_t* out,
                     const ResizeOptions& options) {
  SSD_EXPECT(source.width > 0 && source.height > 0 && width > 0 && height > 0);
  horizontal_.make(source.width, width);
  vertical_.make(source.height, height);
  const bool has_few_columns = horizontal_.tap_count <= kFewTaps;
  if (has_few_columns) spread_weights();
  rows_.resize(static_cast<std::size_t>(vertical_.tap_count));
  row_.resize(static_cast<std::size_t>(source.width) * 3 + kLanes);  // vectors read beyond, with weights of 0
  const std::size_t out_bytes = static_cast<std::size_t>(width) * 3;
  scaled_.resize(kRowsTogether * out_bytes + 1);

  const Columns columns{horizontal_.first.data(), spread_.data(), width, options.is_flipped ? -1 : 1};
  for (int first = 0; first < height; first += kRowsTogether, out += kRowsTogether * out_bytes) {
    const int count = std::min(kRowsTogether, height - first);
    for (int i = 0; i < count; ++i) {
      mix_rows(source, first + i);
      std::uint8_t* scaled = scaled_.data() + static_cast<std::size_t>(i) * out_bytes;
      if (has_few_columns) {
        const int vectors = (horizontal_.tap_count + kPixelsInVector - 1) / kPixelsInVector;
        mix_few_columns(row_.data(), columns, vectors, scaled);
      } else {
        mix_many_columns(row_.data(), horizontal_.weights.data(), horizontal_.tap_count, columns, scaled);
      }
    }
    const auto pixels = static_cast<std::size_t>(count) * static_cast<std::size_t>(width);
    if (options.color != nullptr) {
      apply_color(*options.color, scaled_.data(), pixels, out);
    } else {
      std::copy_n(scaled_.data(), pixels * 3, out);
    }
  }
}

}  // namespace ssd
