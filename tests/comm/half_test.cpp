#include "comm/half.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/random.hpp"
#include "support/simd_targets.hpp"

namespace ssd {
namespace {

// Every half by its definition: sign, exponent with bias 15, 10 bits of fraction (IEEE 754-2008, 3.4).
double half_by_definition(std::uint32_t bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  const int exponent = static_cast<int>((bits >> 10) & 31U);
  const double fraction = (bits & 1023U) / 1024.0;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  return exponent == 0 ? sign * std::ldexp(fraction, -14) : sign * std::ldexp(1 + fraction, exponent - 15);
}

TEST(Half, every_value_equals_its_definition_and_survives_the_round_trip) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = half_to_float(static_cast<std::uint16_t>(bits));
    const double wanted = half_by_definition(bits);
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(value));
      continue;
    }
    ASSERT_EQ(value, wanted) << bits;
    ASSERT_EQ(float_to_half(value), bits);
  }
}

TEST(Half, rounds_to_the_nearest_and_ties_to_even) {
  for (std::uint32_t bits = 0; bits + 1 < 0x7C00; ++bits) {
    const double low = half_by_definition(bits), high = half_by_definition(bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);  // exact: one bit more than a half
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(float_to_half(middle), even) << bits;
    ASSERT_EQ(float_to_half(std::nextafter(middle, 1e30F)), bits + 1);
    ASSERT_EQ(float_to_half(std::nextafter(middle, 0.F)), bits);
  }
  EXPECT_EQ(float_to_half(65519.99F), 0x7BFF);
  EXPECT_EQ(float_to_half(65520.F), 0x7C00);
}

void compare_short_blocks() {
  RandomStream random(1, RandomPurpose::test, 0, 0);
  for (std::size_t count = 0; count < 40; ++count) {
    std::vector<float> values(count);
    std::vector<std::uint16_t> brains(count + 1), a(count + 1), b(count + 1);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] =
          std::ldexp(static_cast<float>(random.uniform(-1, 1)), static_cast<int>(random.below(50)) - 28);
      brains[i + 1] = float_to_bfloat16(values[i]);
      a[i + 1] = float_to_half(static_cast<float>(random.uniform(-100, 100)));
      b[i + 1] = float_to_half(static_cast<float>(random.uniform(-1, 1)));
    }
    std::vector<std::uint16_t> from_floats(count), from_brains(count), sums(a);
    floats_to_halves(values.data(), .25F, from_floats.data(), count);
    bfloat16s_to_halves(brains.data() + 1, .25F, from_brains.data(), count);
    add_halves(sums.data() + 1, b.data() + 1, count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(from_floats[i], float_to_half(values[i] * .25F));
      EXPECT_EQ(from_brains[i], float_to_half(bfloat16_to_float(brains[i + 1]) * .25F));
      EXPECT_EQ(sums[i + 1], float_to_half(half_to_float(a[i + 1]) + half_to_float(b[i + 1])));
    }
    std::vector<float> from_halves(count), widened(count);
    halves_to_floats(a.data() + 1, from_halves.data(), count);
    bfloat16s_to_floats(brains.data() + 1, widened.data(), count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(from_halves[i], half_to_float(a[i + 1]));
      EXPECT_EQ(widened[i], bfloat16_to_float(brains[i + 1]));
    }
  }
}

// Every half, and floats of every exponent with the fractions at which rounding turns, infinities and NaN.
TEST(Half, blocks_give_the_bits_of_the_single_conversions) {
  std::vector<std::uint16_t> halves(65536), terms(65536), brains;
  std::vector<float> floats;
  RandomStream random(1, RandomPurpose::test, 0, 0);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    halves[i] = static_cast<std::uint16_t>(i);
    terms[i] = static_cast<std::uint16_t>(random.below(65536));
  }
  for (std::uint32_t upper = 0; upper < 65536; upper += 16) {
    brains.push_back(static_cast<std::uint16_t>(upper | random.below(16)));
    for (const std::uint32_t fraction :
         {0x0U, 0x1U, 0xFFFU, 0x1000U, 0x1001U, 0x1FFFU, 0x2000U, 0x3000U, 0xFFFFFU})
      floats.push_back(std::bit_cast<float>(upper << 16 | fraction));
  }
  test::on_each_simd_target([&] {
    std::vector<float> widened(halves.size()), widened_brains(brains.size());
    std::vector<std::uint16_t> narrowed(floats.size()), narrowed_brains(brains.size()), sums = halves;
    halves_to_floats(halves.data(), widened.data(), halves.size());
    bfloat16s_to_floats(brains.data(), widened_brains.data(), brains.size());
    floats_to_halves(floats.data(), .25F, narrowed.data(), floats.size());
    bfloat16s_to_halves(brains.data(), .25F, narrowed_brains.data(), brains.size());
    add_halves(sums.data(), terms.data(), sums.size());
    const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
    for (std::size_t i = 0; i < halves.size(); ++i) {
      ASSERT_EQ(bits(widened[i]), bits(half_to_float(halves[i]))) << i;
      // Of two NaN either may be the sum.
      const std::uint16_t sum = float_to_half(half_to_float(halves[i]) + half_to_float(terms[i]));
      if (std::isnan(half_to_float(sum))) {
        ASSERT_TRUE(std::isnan(half_to_float(sums[i]))) << i;
      } else {
        ASSERT_EQ(sums[i], sum) << i;
      }
    }
    for (std::size_t i = 0; i < floats.size(); ++i)
      ASSERT_EQ(narrowed[i], float_to_half(floats[i] * .25F)) << bits(floats[i]);
    for (std::size_t i = 0; i < brains.size(); ++i) {
      ASSERT_EQ(bits(widened_brains[i]), bits(bfloat16_to_float(brains[i])));
      ASSERT_EQ(narrowed_brains[i], float_to_half(bfloat16_to_float(brains[i]) * .25F)) << brains[i];
    }
  });
}

TEST(Half, blocks_give_the_bits_of_the_single_conversions_at_every_length_and_alignment) {
  test::on_each_simd_target([] { compare_short_blocks(); });
}

TEST(Bfloat16, rounds_to_nearest_even_and_keeps_nan) {
  EXPECT_EQ(float_to_bfloat16(1.F), 0x3F80);
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3F808000U)), 0x3F80);  // a tie: to even
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3F818000U)), 0x3F82);
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3F808001U)), 0x3F81);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::bit_cast<float>(0x7F800001U)))));
}

}  // namespace
}  // namespace ssd
