#include "image/color.hpp"

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

SSD_VECTOR_CLONES void apply_fixed_point(const std::int32_t* m, std::int32_t offset,
                                         const std::uint8_t* levels, std::size_t count,
                                         std::uint8_t* __restrict out) {
  const std::int32_t m00 = m[0], m01 = m[1], m02 = m[2], m10 = m[3], m11 = m[4], m12 = m[5];
  const std::int32_t m20 = m[6], m21 = m[7], m22 = m[8];
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
                 std::uint8_t* out) {
  std::array<std::int32_t, 9> matrix{};
  for (std::size_t i = 0; i < 9; ++i) {
    const double coefficient = transform.matrix[i / 3][i % 3];
    SSD_EXPECT(std::abs(coefficient) <= kLargestCoefficient);
    matrix[i] = fixed_point(coefficient);
  }
  SSD_EXPECT(std::abs(transform.offset) <= kLargestCoefficient * 255);
  const std::int32_t half = 1 << (kFractionBits - 1);
  apply_fixed_point(matrix.data(), fixed_point(transform.offset) + half, levels, count, out);
}

}  // namespace ssd
