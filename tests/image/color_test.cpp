#include "image/color.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "support/simd_targets.hpp"

namespace ssd {
namespace {

std::vector<std::uint8_t> changed(const std::vector<std::uint8_t>& pixels, const ColorChange& change) {
  std::vector<std::uint8_t> out(pixels.size());
  apply_color(color_transform(change), pixels.data(), pixels.size() / 3, out.data());
  return out;
}

TEST(Color, moves_no_level_by_more_than_one_without_a_change) {
  std::vector<std::uint8_t> pixels;
  for (int level = 0; level < 256; ++level) pixels.insert(pixels.end(), 3, static_cast<std::uint8_t>(level));
  const auto out = changed(pixels, {});
  // The three-digit YIQ matrices are inverse to .003, which is .7 of a level at 255.
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], pixels[i], 1);
}

TEST(Color, applies_brightness_after_contrast_around_level_128) {
  // 1.1 * (128 + .5 * (100 - 128)) = 125.4; the matrices keep this gray to .003 * 100 * .55.
  const auto out = changed({100, 100, 100}, {.contrast = 0.5, .brightness = 1.1});
  for (const std::uint8_t level : out) EXPECT_NEAR(level, 125.4, 0.7);
  EXPECT_NEAR(changed({128, 128, 128}, {.contrast = 1.5})[0], 128, 1);
}

TEST(Color, clamps_at_both_ends) {
  EXPECT_EQ(changed({250, 250, 250}, {.contrast = 1.5, .brightness = 1.125}),
            (std::vector<std::uint8_t>{255, 255, 255}));
  EXPECT_EQ(changed({10, 10, 10}, {.contrast = 1.5}), (std::vector<std::uint8_t>{0, 0, 0}));
}

TEST(Color, takes_all_colour_out_at_saturation_zero) {
  const auto out = changed({200, 50, 30}, {.saturation = 0});
  const int luma = static_cast<int>(std::lround(0.299 * 200 + 0.587 * 50 + 0.114 * 30));  // Y of YIQ
  for (const std::uint8_t level : out) EXPECT_EQ(level, luma);
}

TEST(Color, turns_hue_by_a_rotation_of_i_and_q) {
  // Worked by hand from the matrices: (100, 50, 25) has I = 37.875, Q = 2.725; turned by 90 degrees I = Q, Q
  // = -I.
  const double y = 0.299 * 100 + 0.587 * 50 + 0.114 * 25, i = 2.725, q = -37.875;
  const auto out = changed({100, 50, 25}, {.hue_degrees = 90});
  EXPECT_EQ(out[0], std::lround(y + 0.956 * i + 0.621 * q));
  EXPECT_EQ(out[1], std::lround(y - 0.272 * i - 0.647 * q));
  EXPECT_EQ(out[2], std::lround(std::max(y - 1.107 * i + 1.705 * q, 0.0)));
}

TEST(Color, is_the_matrix_rounded_once) {
  RandomStream random(3, RandomPurpose::test, 0, 0);
  for (int round = 0; round < 100; ++round) {
    const ColorChange change{random.uniform(-20, 20), random.uniform(0.5, 1.5), random.uniform(0.5, 1.5),
                             random.uniform(0.875, 1.125)};
    std::vector<std::uint8_t> pixels(3 * 37);
    for (auto& level : pixels) level = static_cast<std::uint8_t>(random.below(256));
    const auto out = changed(pixels, change);
    const ColorTransform transform = color_transform(change);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const std::size_t first = i / 3 * 3;
      double value = transform.offset;
      for (std::size_t k = 0; k < 3; ++k) value += transform.matrix[i % 3][k] * pixels[first + k];
      // Half a level of rounding, and four coefficients taken to 1/8192.
      EXPECT_NEAR(out[i], std::clamp(value, 0.0, 255.0), 0.5 + (3 * 255 + 1) / 8192.0);
    }
  }
}

// The definition, pixel by pixel: coefficients and offset in 1/4096, one rounding.
std::vector<std::uint8_t> by_definition(const ColorTransform& transform,
                                        const std::vector<std::uint8_t>& pixels) {
  const auto fixed = [](double value) { return std::lround(value * 4096); };
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const auto& row = transform.matrix[i % 3];
    long sum = fixed(transform.offset) + 2048;
    for (std::size_t k = 0; k < 3; ++k) sum += fixed(row[k]) * pixels[i / 3 * 3 + k];
    out.push_back(static_cast<std::uint8_t>(std::clamp(sum >> 12, 0L, 255L)));
  }
  return out;
}

TEST(Color, is_its_definition_on_every_vector_unit) {
  test::on_each_simd_target([] {
    RandomStream random(5, RandomPurpose::test, 0, 0);
    for (std::size_t round = 0; round < 300; ++round) {
      // Numbers of pixels with and without a rest, and factors of up to 4: coefficients that fit vectors and
      // not.
      const std::size_t count = round % 60, bytes = 3 * count;
      const double most = round % 2 == 0 ? 1.5 : 4;
      const auto transform = color_transform({random.uniform(-180, 180), random.uniform(0, most),
                                              random.uniform(0, most), random.uniform(0, most)});
      std::vector<std::uint8_t> pixels(bytes), out(bytes + 1, 0xa5);
      for (auto& level : pixels) level = static_cast<std::uint8_t>(random.below(256));
      apply_color(transform, pixels.data(), count, out.data());
      auto expected = by_definition(transform, pixels);
      expected.push_back(0xa5);  // nothing is written behind the pixels
      ASSERT_EQ(out, expected) << count;
    }
  });
}

// The largest and the smallest coefficients that vectors multiply, and the next ones.
TEST(Color, multiplies_by_all_that_fits_sixteen_bits_and_more) {
  test::on_each_simd_target([] {
    RandomStream random(6, RandomPurpose::test, 0, 0);
    std::vector<std::uint8_t> pixels;
    for (int level = 0; level < 64 * 3; ++level)
      pixels.push_back(static_cast<std::uint8_t>(random.below(256)));
    for (const double value : {32767 / 4096.0, 8.0, -8.0, -32769 / 4096.0}) {
      for (const double offset : {0.0, 100.0, -100.0, 64 * 255.0, -64 * 255.0}) {
        // Differences of levels times the coefficient, and a part of the third: few results are cut off at 0
        // and 255 without an offset that large.
        const ColorTransform transform{{{{value, -value, 0.3}, {-0.4, value, -value}, {-value, 0.7, value}}},
                                       offset};
        std::vector<std::uint8_t> out(pixels.size());
        apply_color(transform, pixels.data(), pixels.size() / 3, out.data());
        EXPECT_EQ(out, by_definition(transform, pixels)) << value << ' ' << offset;
      }
    }
  });
}

TEST(Color, refuses_coefficients_that_do_not_fit) {
  EXPECT_THROW(changed({1, 2, 3}, {.contrast = 1000}), ContractError);
}

}  // namespace
}  // namespace ssd
