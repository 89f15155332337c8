// From coefficients to pixels on every vector unit, against the transform and the colours written out number
// by number. That these are libjpeg's is what jpeg_crop_test.cpp shows.
#include "image/jpeg_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/random.hpp"
#include "support/simd_targets.hpp"

namespace ssd {
namespace {

std::int64_t fixed(double value, int bits) {
  return std::lround(value * static_cast<double>(1 << bits));
}
std::int64_t wrapped(std::int64_t value) {
  return static_cast<std::int16_t>(value);
}

// Loeffler, Ligtenberg and Moschytz 1989 with 13 bits behind the point, of v[0], v[stride], ...; the sums
// that libjpeg-turbo makes of 16 bits wrap around, and so do all in 32.
void inverse_transform(std::int64_t* v, std::size_t stride, int shift) {
  const auto at = [&](std::size_t i) -> std::int64_t& { return v[i * stride]; };
  const auto c = [](double value) { return fixed(value, 13); };
  const std::int64_t even = (at(2) + at(6)) * c(0.541196100);
  const std::int64_t low = even - at(6) * c(1.847759065), high = even + at(2) * c(0.765366865);
  const std::int64_t sum = wrapped(at(0) + at(4)) * 8192, difference = wrapped(at(0) - at(4)) * 8192;
  const std::int64_t a = wrapped(at(7) + at(3)), b = wrapped(at(5) + at(1));
  const std::int64_t z1 = (at(7) + at(1)) * -c(0.899976223), z2 = (at(5) + at(3)) * -c(2.562915447);
  const std::int64_t z5 = (a + b) * c(1.175875602);
  const std::int64_t z3 = z5 - a * c(1.961570560), z4 = z5 - b * c(0.390180644);
  const std::int64_t evens[] = {sum + high, difference + low, difference - low, sum - high};
  const std::int64_t odds[] = {at(1) * c(1.501321110) + z1 + z4, at(3) * c(3.072711026) + z2 + z3,
                               at(5) * c(2.053119869) + z2 + z4, at(7) * c(0.298631336) + z1 + z3};
  const auto out = [&](std::int64_t value) {
    const auto in_32_bits = static_cast<std::int32_t>(value + (std::int64_t{1} << (shift - 1)));
    return std::clamp<std::int64_t>(in_32_bits >> shift, -32768, 32767);
  };
  for (std::size_t i = 0; i < 4; ++i) {
    at(i) = out(evens[i] + odds[i]);
    at(7 - i) = out(evens[i] - odds[i]);
  }
}

std::array<std::int64_t, kBlockSize> levels_of(const std::int16_t* side, const QuantisationSteps& steps) {
  std::array<std::int64_t, kBlockSize> block;
  for (std::size_t i = 0; i < kBlockSize; ++i) block[i] = wrapped(side[i / 8 * 16 + i % 8] * steps[i]);
  for (std::size_t column = 0; column < 8; ++column) inverse_transform(&block[column], 8, 11);
  for (std::size_t row = 0; row < 8; ++row) inverse_transform(&block[row * 8], 1, 18);
  for (auto& level : block) level = std::clamp<std::int64_t>(level + 128, 0, 255);
  return block;
}

struct Pixels {
  std::vector<std::uint8_t> first, second;  // of the two rows of MCUs
  bool operator==(const Pixels&) const = default;
};

Pixels by_definition(const std::vector<std::int16_t>& pairs, const SegmentSteps& steps, std::size_t mcus) {
  Pixels pixels;
  for (std::size_t half = 0; half < 2; ++half) {
    auto& out = half == 0 ? pixels.first : pixels.second;
    out.assign(mcus * kBlockSize * 3, 0);
    for (std::size_t mcu = 0; mcu < mcus; ++mcu) {
      std::array<std::array<std::int64_t, kBlockSize>, kSegmentComponents> levels;
      for (std::size_t c = 0; c < kSegmentComponents; ++c)
        levels[c] = levels_of(&pairs[(mcu * kSegmentComponents + c) * kBlockPairSize + half * 8], steps[c]);
      for (std::size_t i = 0; i < kBlockSize; ++i) {
        const std::int64_t y = levels[0][i], blue = levels[1][i] - 128, red = levels[2][i] - 128;
        const auto rounded = [](std::int64_t value) { return (value + 32768) >> 16; };
        const std::int64_t rgb[] = {
            y + rounded(red * fixed(1.402, 16)),
            y + rounded(-blue * fixed(0.34414, 16) - red * fixed(0.71414, 16)),
            y + rounded(blue * fixed(1.772, 16)),
        };
        for (std::size_t channel = 0; channel < 3; ++channel) {
          out[(i / 8 * mcus * 8 + mcu * 8 + i % 8) * 3 + channel] =
              static_cast<std::uint8_t>(std::clamp<std::int64_t>(rgb[channel], 0, 255));
        }
      }
    }
  }
  return pixels;
}

// Nothing where write_mcus leaves the blocks to libjpeg.
Pixels written(const std::vector<std::int16_t>& pairs, const std::vector<std::uint8_t>& last,
               const SegmentSteps& steps, std::size_t mcus) {
  const std::size_t row_bytes = mcus * 24 + kBytesBehindRow;
  std::vector<std::uint8_t> out(16 * row_bytes);
  if (!write_mcus(pairs.data(), last.data(), steps, static_cast<int>(mcus), out.data(),
                  out.data() + 8 * row_bytes, row_bytes))
    return {};
  Pixels pixels;
  for (std::size_t row = 0; row < 16; ++row) {
    auto& half = row < 8 ? pixels.first : pixels.second;
    const auto begin = out.begin() + static_cast<std::ptrdiff_t>(row * row_bytes);
    half.insert(half.end(), begin, begin + static_cast<std::ptrdiff_t>(mcus * 24));
  }
  return pixels;
}

// Coefficients of up to `most`, the first `count` in zigzag order of each block.
struct Blocks {
  std::vector<std::int16_t> pairs;
  std::vector<std::uint8_t> last;
};
Blocks draw_blocks(RandomStream& random, std::size_t mcus, int most, std::uint32_t most_count) {
  Blocks blocks{std::vector<std::int16_t>(mcus * kSegmentComponents * kBlockPairSize),
                std::vector<std::uint8_t>(mcus * kSegmentComponents)};
  for (std::size_t block = 0; block < blocks.last.size() * 2; ++block) {
    const std::uint32_t count = 1 + random.below(most_count);
    for (std::size_t i = 0; i < count; ++i) {
      blocks.pairs[block / 2 * kBlockPairSize + block % 2 * 8 + kZigzagOfPairs[i]] =
          static_cast<std::int16_t>(static_cast<int>(random.below(static_cast<std::uint32_t>(2 * most + 1))) -
                                    most);
    }
    auto& last = blocks.last[block / 2];
    last = std::max(last, static_cast<std::uint8_t>(count - 1));
  }
  return blocks;
}

TEST(WriteMcus, is_its_definition_on_every_vector_unit) {
  test::on_each_simd_target([] {
    RandomStream random(8, RandomPurpose::test, 0, 0);
    for (int round = 0; round < 400; ++round) {
      // Few coefficients (the first four diagonals) and many; levels of pictures, and sums that leave 16
      // bits.
      const std::size_t mcus = 1 + random.below(5);
      const int most = round % 4 == 0 ? 2047 : 60;
      const auto blocks = draw_blocks(random, mcus, most, round % 2 == 0 ? 10 : 64);
      SegmentSteps steps;
      for (auto& component : steps) {
        for (auto& step : component)
          step = static_cast<std::uint16_t>(1 + random.below(round % 4 == 0 ? 4 : 30));
      }
      const Pixels pixels = written(blocks.pairs, blocks.last, steps, mcus);
      ASSERT_EQ(pixels, by_definition(blocks.pairs, steps, mcus)) << round;
    }
  });
}

TEST(WriteMcus, leaves_larger_averages_to_libjpeg) {
  test::on_each_simd_target([] {
    SegmentSteps steps;
    for (auto& component : steps) component.fill(1);
    for (const std::size_t place : {0, 7, 8, 15}) {  // the first row of both blocks of a pair
      for (const int value : {8191, 8192, -8191, -8192}) {
        std::vector<std::int16_t> pairs(2 * kSegmentComponents * kBlockPairSize);
        pairs[4 * kBlockPairSize + place] = static_cast<std::int16_t>(value);
        const std::vector<std::uint8_t> last(2 * kSegmentComponents, 63);
        EXPECT_EQ(written(pairs, last, steps, 2).first.empty(), std::abs(value) > 8191)
            << place << ' ' << value;
      }
    }
  });
}

}  // namespace
}  // namespace ssd
