#include "image/color.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "core/error.hpp"
#include "core/vector_clones.hpp"

namespace ssd {
namespace {

using Matrix = std::array<std::array<double, 3>, 3>;

// RGB to YIQ, the NTSC colour space, and back, with the three digits of DALI's Hsv operator, which the
// reference uses. They are not exact inverses: at saturation 1 the blue of white sinks by 0.7 of a level.
constexpr Matrix kYiqOfRgb = {{{0.299, 0.587, 0.114}, {0.596, -0.274, -0.321}, {0.211, -0.523, 0.311}}};
constexpr Matrix kRgbOfYiq = {{{1, 0.956, 0.621}, {1, -0.272, -0.647}, {1, -1.107, 1.705}}};

constexpr double kContrastCentre = 128;  // level that contrast leaves alone; the reference's contrast_center

constexpr int kFractionBits = 12;
constexpr double kLargestCoefficient = 64;  // 3 * 64 * 255 << 12 fits 32 bits

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 3; ++k) result[i][j] += a[i][k] * b[k][j];
    }
  }
  return result;
}

std::int32_t fixed_point(double value) {
  return static_cast<std::int32_t>(std::lround(value * (1 << kFractionBits)));
}

// In units of 1/4096.
struct FixedTransform {
  std::array<std::array<std::int32_t, 3>, 3> matrix{};
  std::int32_t offset = 0;  // with the half that rounds
};

SSD_VECTOR_CLONES void apply_any(const FixedTransform& transform, const std::uint8_t* levels,
                                 std::size_t count, std::uint8_t* __restrict out) {
  const auto [red_row, green_row, blue_row] = transform.matrix;
  const auto [m00, m01, m02] = red_row;
  const auto [m10, m11, m12] = green_row;
  const auto [m20, m21, m22] = blue_row;
  const std::int32_t offset = transform.offset;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t r = levels[3 * i], g = levels[3 * i + 1], b = levels[3 * i + 2];
    const std::int32_t red = (m00 * r + m01 * g + m02 * b + offset) >> kFractionBits;
    const std::int32_t green = (m10 * r + m11 * g + m12 * b + offset) >> kFractionBits;
    const std::int32_t blue = (m20 * r + m21 * g + m22 * b + offset) >> kFractionBits;
    out[3 * i] = static_cast<std::uint8_t>(std::min(std::max(red, 0), 255));
    out[3 * i + 1] = static_cast<std::uint8_t>(std::min(std::max(green, 0), 255));
    out[3 * i + 2] = static_cast<std::uint8_t>(std::min(std::max(blue, 0), 255));
  }
}

#if defined(__x86_64__)
// The vectors below multiply 16-bit numbers: coefficients up to +-8. Those of the reference's ranges are.
bool fits_vectors(const FixedTransform& transform) {
  for (const auto& row : transform.matrix) {
    for (const std::int32_t value : row) {
      if (value != static_cast<std::int16_t>(value)) return false;
    }
  }
  return true;
}

// Two 16-bit numbers, for each 32-bit lane.
constexpr std::int32_t pair_of(std::int32_t low, std::int32_t high) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(high) << 16) |
                                   (static_cast<std::uint32_t>(low) & 0xffff));
}

// Eight pixels at once, four in each half of a vector. Returns how many it has done: it reads and writes up
// to four bytes behind them, which are the next pixels'.
SSD_TARGET_AVX2 std::size_t apply_avx2(const FixedTransform& transform, const std::uint8_t* levels,
                                       std::size_t count, std::uint8_t* out) {
  // Twelve bytes become four times R G B 0, and what has been packed to R R R R G G G G B B B B twelve again.
  const __m256i spread =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
  const __m256i gather =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11, -1, -1, -1, -1));
  const __m256i offset = _mm256_set1_epi32(transform.offset);
  __m256i red_blue[3], green[3];
  for (std::size_t c = 0; c < 3; ++c) {
    red_blue[c] = _mm256_set1_epi32(pair_of(transform.matrix[c][0], transform.matrix[c][2]));
    green[c] = _mm256_set1_epi32(pair_of(transform.matrix[c][1], 0));
  }
  std::size_t done = 0;
  for (; done + 10 <= count; done += 8, levels += 24, out += 24) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(levels));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(levels + 12));
    const __m256i pixels = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), spread);
    const __m256i rb = _mm256_and_si256(pixels, _mm256_set1_epi16(0xff)), g = _mm256_srli_epi16(pixels, 8);
    __m256i channel[3];
    for (std::size_t c = 0; c < 3; ++c) {
      const __m256i sum =
          _mm256_add_epi32(_mm256_madd_epi16(rb, red_blue[c]), _mm256_madd_epi16(g, green[c]));
      channel[c] = _mm256_srai_epi32(_mm256_add_epi32(sum, offset), kFractionBits);
    }
    const __m256i packed = _mm256_packus_epi16(_mm256_packs_epi32(channel[0], channel[1]),
                                               _mm256_packs_epi32(channel[2], channel[2]));
    const __m256i result = _mm256_shuffle_epi8(packed, gather);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(result));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 12), _mm256_extracti128_si256(result, 1));
  }
  return done;
}
#endif

}  // namespace

// Hue is a rotation of the plane of I and Q, saturation its scale; then
// out = brightness * (centre + contrast * (in - centre)).
ColorTransform color_transform(const ColorChange& change) {
  const double angle = change.hue_degrees * std::numbers::pi / 180;
  const double c = change.saturation * std::cos(angle);
  const double s = change.saturation * std::sin(angle);
  const Matrix chroma = {{{1, 0, 0}, {0, c, s}, {0, -s, c}}};
  ColorTransform transform{product(kRgbOfYiq, product(chroma, kYiqOfRgb)), 0};
  for (auto& row : transform.matrix) {
    for (double& coefficient : row) coefficient *= change.brightness * change.contrast;
  }
  transform.offset = change.brightness * (kContrastCentre - change.contrast * kContrastCentre);
  return transform;
}

void apply_color(const ColorTransform& transform, const std::uint8_t* levels, std::size_t count,
                 std::uint8_t* out, VectorUnit unit) {
  SSD_EXPECT(is_usable(unit));
  FixedTransform fixed;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      const double coefficient = transform.matrix[i][j];
      SSD_EXPECT(std::abs(coefficient) <= kLargestCoefficient);
      fixed.matrix[i][j] = fixed_point(coefficient);
    }
  }
  SSD_EXPECT(std::abs(transform.offset) <= kLargestCoefficient * 255);
  fixed.offset = fixed_point(transform.offset) + (1 << (kFractionBits - 1));
  std::size_t done = 0;
#if defined(__x86_64__)
  if (unit != VectorUnit::any && fits_vectors(fixed)) done = apply_avx2(fixed, levels, count, out);
#endif
  apply_any(fixed, levels + 3 * done, count - done, out + 3 * done);
}

}  // namespace ssd
