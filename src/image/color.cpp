#include "image/color.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/color.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "core/error.hpp"
#include "image/fixed_color.hpp"
#include "image/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace ssd::HWY_NAMESPACE {

// Four pixels in a block.
using Bytes = hn::CappedTag<std::uint8_t, 32>;
using Shorts = hn::Repartition<std::int16_t, Bytes>;
using Ints = hn::Repartition<std::int32_t, Bytes>;
constexpr std::size_t kBlocks = hn::MaxLanes(Bytes()) / 16;
constexpr std::size_t kBlockPixels = 4, kBlockBytes = 3 * kBlockPixels;

// Some pixels at once, for coefficients of 16 bits. Returns how many it has done: it reads and writes up to
// four bytes behind them, which are the next pixels'.
std::size_t color_blocks(const FixedColor& color, const std::uint8_t* levels, std::size_t count,
                         std::uint8_t* out) {
  // Twelve bytes become four times R G B 0; and R B R B R B R B G B G B G B G B twelve again.
  alignas(16) static constexpr std::uint8_t kSpread[16] = {0, 1, 2, 128, 3, 4,  5,  128,
                                                           6, 7, 8, 128, 9, 10, 11, 128};
  alignas(16) static constexpr std::uint8_t kGather[16] = {0, 8, 1, 2, 10, 3, 4, 12, 5, 6, 14, 7, 0, 0, 0, 0};
  const auto spread = hn::LoadDup128(Bytes(), kSpread), gather = hn::LoadDup128(Bytes(), kGather);
  const auto offset = hn::Set(Ints(), color.offset);
  const auto zero = hn::Zero(Shorts()), most = hn::Set(Shorts(), std::int16_t{255});
  hn::Vec<Shorts> red_blue[3], green[3];
  for (std::size_t c = 0; c < 3; ++c) {
    red_blue[c] = factors_in_turn(Shorts(), color.matrix[c][0], color.matrix[c][2]);
    green[c] = factors_in_turn(Shorts(), color.matrix[c][1], 0);
  }
  constexpr std::size_t kPixels = kBlocks * kBlockPixels, kPixelsBehind = 2;
  std::size_t done = 0;
  for (; done + kPixels + kPixelsBehind <= count; done += kPixels) {
    const auto pixels = hn::TableLookupBytesOr0(
        load_blocks(Bytes(), levels + 3 * done, levels + 3 * done + kBlockBytes), spread);
    const auto rb = hn::And(hn::BitCast(Shorts(), pixels), most);
    const auto g =
        hn::BitCast(Shorts(), hn::ShiftRight<8>(hn::BitCast(hn::RebindToUnsigned<Shorts>(), pixels)));
    hn::Vec<Ints> channel[3];
    for (std::size_t c = 0; c < 3; ++c) {
      const auto sum =
          hn::Add(sums_of_products(Shorts(), rb, red_blue[c]), sums_of_products(Shorts(), g, green[c]));
      channel[c] = hn::ShiftRight<kFixedColorBits>(hn::Add(sum, offset));
    }
    const auto level = [&](hn::Vec<Ints> a, hn::Vec<Ints> b) {
      return hn::Min(hn::Max(hn::ReorderDemote2To(Shorts(), a, b), zero), most);
    };
    const auto mixed = hn::Or(level(channel[0], channel[1]), hn::ShiftLeft<8>(level(channel[2], channel[2])));
    store_blocks(Bytes(), hn::TableLookupBytes(hn::BitCast(Bytes(), mixed), gather), out + 3 * done,
                 out + 3 * done + kBlockBytes);
  }
  return done;
}

}  // namespace ssd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ssd {

HWY_EXPORT(color_blocks);

namespace {

using Matrix = std::array<std::array<double, 3>, 3>;

// RGB to YIQ, the NTSC colour space, and back, with the three digits of DALI's Hsv operator, which the
// reference uses. They are not exact inverses: at saturation 1 the blue of white sinks by 0.7 of a level.
constexpr Matrix kYiqOfRgb = {{{0.299, 0.587, 0.114}, {0.596, -0.274, -0.321}, {0.211, -0.523, 0.311}}};
constexpr Matrix kRgbOfYiq = {{{1, 0.956, 0.621}, {1, -0.272, -0.647}, {1, -1.107, 1.705}}};

constexpr double kContrastCentre = 128;  // level that contrast leaves alone; the reference's contrast_center

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
  return static_cast<std::int32_t>(std::lround(value * (1 << kFixedColorBits)));
}

// The blocks' vectors multiply 16-bit numbers: coefficients up to +-8. Those of the reference's ranges are.
bool fits_blocks(const FixedColor& color) {
  for (const auto& row : color.matrix) {
    for (const std::int32_t value : row) {
      if (value != static_cast<std::int16_t>(value)) return false;
    }
  }
  return true;
}

void color_pixels(const FixedColor& color, const std::uint8_t* levels, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i, levels += 3, out += 3) {
    for (std::size_t c = 0; c < 3; ++c) {
      const auto& row = color.matrix[c];
      const std::int32_t sum = row[0] * levels[0] + row[1] * levels[1] + row[2] * levels[2] + color.offset;
      out[c] = static_cast<std::uint8_t>(std::clamp(sum >> kFixedColorBits, 0, 255));
    }
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
  FixedColor fixed;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      const double coefficient = transform.matrix[i][j];
      SSD_EXPECT(std::abs(coefficient) <= kLargestCoefficient);
      fixed.matrix[i][j] = fixed_point(coefficient);
    }
  }
  SSD_EXPECT(std::abs(transform.offset) <= kLargestCoefficient * 255);
  fixed.offset = fixed_point(transform.offset) + (1 << (kFixedColorBits - 1));
  const std::size_t done =
      fits_blocks(fixed) ? HWY_DYNAMIC_DISPATCH(color_blocks)(fixed, levels, count, out) : 0;
  color_pixels(fixed, levels + 3 * done, count - done, out + 3 * done);
}

}  // namespace ssd
#endif
