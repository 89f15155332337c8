// Averages of gradients in FP16 over 64 ranks as the MPI communicator makes them: each rank's value times
// 1/ranks is rounded to half, then halves are added, in the order of a ring or of a tree. Against the mean in
// double.
//
// The bound. With u = 2^-11 (1 + 2^-10), one rounding to half by way of float (2^-11 and the 2^-24 of the
// float, which can carry the value over a tie), a rank's term is t = x/ranks (1 + e) + f, |e| <= u, |f| <=
// 2^-25: half the distance of subnormal halves. Additions of subnormals are exact, others round by a factor
// of 1 + e. A term meets at most `additions` of them (ranks - 1 in a ring, log2(ranks) in a tree), so that
//   |average - mean| <= ((1 + u)^(additions + 1) - 1) sum|x|/ranks + ranks 2^-25 (1 + u)^additions,
// and no partial sum is larger than (max|x| + ranks 2^-25) (1 + u)^(additions + 1): for 60000 and 63
// additions 61906, below 65520, from where on halves are infinite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "comm/half.hpp"
#include "core/random.hpp"

namespace ssd {
namespace {

constexpr std::size_t kRanks = 64;
constexpr double kRounding = 0x1p-11 * (1 + 0x1p-10);
constexpr float kLossScale = 65536;  // at the start, train/loss_scaler.hpp

enum class Order { ring, tree };

int additions_of(Order order) {
  return order == Order::ring ? static_cast<int>(kRanks) - 1 : 6;
}

using Halves = std::vector<std::uint16_t>;

Halves average(const std::vector<std::vector<float>>& gradients, Order order) {
  std::vector<Halves> terms;
  for (const auto& own : gradients) {
    terms.emplace_back(own.size());
    floats_to_halves(own.data(), 1.F / kRanks, terms.back().data(), own.size());
  }
  // Ring: each is added to the first in turn. Tree: pairs of distance 1, 2, 4, ...
  for (std::size_t distance = 1; order == Order::tree && distance < kRanks; distance *= 2) {
    for (std::size_t rank = 0; rank < kRanks; rank += 2 * distance) {
      add_halves(terms[rank].data(), terms[rank + distance].data(), terms[rank].size());
    }
  }
  for (std::size_t rank = 1; order == Order::ring && rank < kRanks; ++rank) {
    add_halves(terms[0].data(), terms[rank].data(), terms[0].size());
  }
  return terms[0];
}

// Gradients of all ranks: the sizes of an element lie within [low, high] evenly on a logarithmic scale; its
// signs are all the same, which makes the largest sums, or random, which makes the smallest.
enum class Signs { same, random };

std::vector<std::vector<float>> gradients_between(double low, double high, Signs signs, std::size_t count) {
  RandomStream random(7, RandomPurpose::test, 0, static_cast<std::uint64_t>(signs == Signs::same));
  std::vector<std::vector<float>> gradients(kRanks, std::vector<float>(count));
  for (std::size_t i = 0; i < count; ++i) {
    const double common = random.below(2) == 0 ? 1 : -1;
    for (auto& own : gradients) {
      const double size = std::exp2(random.uniform(std::log2(low), std::log2(high)));
      own[i] =
          static_cast<float>(signs == Signs::same || random.below(2) == 0 ? common * size : -common * size);
    }
  }
  return gradients;
}

void expect_within_the_bound(const std::vector<std::vector<float>>& gradients) {
  for (const auto order : {Order::ring, Order::tree}) {
    const auto averages = average(gradients, order);
    const double growth = std::pow(1 + kRounding, additions_of(order));
    for (std::size_t i = 0; i < averages.size(); ++i) {
      double mean = 0, mean_size = 0;
      for (const auto& own : gradients) {
        mean += static_cast<double>(own[i]) / kRanks;
        mean_size += std::abs(static_cast<double>(own[i])) / kRanks;
      }
      const double bound = (growth * (1 + kRounding) - 1) * mean_size + kRanks * 0x1p-25 * growth;
      ASSERT_NEAR(half_to_float(averages[i]), mean, bound)
          << "element " << i;  // infinities and NaN are not near
    }
  }
}

struct Range {
  const char* name;
  double low, high;
};

class HalfSum : public testing::TestWithParam<Range> {};

TEST_P(HalfSum, of_64_ranks_does_not_overflow_and_stays_within_the_bound) {
  const auto& range = GetParam();
  for (const auto signs : {Signs::same, Signs::random}) {
    expect_within_the_bound(gradients_between(range.low, range.high, signs, 2000));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Gradients, HalfSum,
    testing::Values(Range{"of_all_sizes", 0x1p-20, 60000}, Range{"small", 0x1p-20, 0x1p-10},
                    Range{"small_and_scaled", 0x1p-20 * kLossScale, 0x1p-10 * kLossScale},
                    Range{"large", 1000, 60000}, Range{"largest", 59000, 60000}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(HalfSumOfEqualGradients, of_60000_overflows_only_without_the_division_before_the_sum) {
  const std::vector<std::vector<float>> gradients(kRanks, std::vector<float>(8, 60000.F));
  for (const auto order : {Order::ring, Order::tree}) {
    for (const auto value : average(gradients, order)) EXPECT_NEAR(half_to_float(value), 60000, 60000 * .032);
  }
  Halves two(8, float_to_half(60000.F));
  add_halves(two.data(), Halves(two).data(), two.size());
  EXPECT_THAT(two, testing::Each(0x7C00));
}

// What loss scaling is for: 2^-20/64 is below half of the smallest half, 2^-24; times 65536 it is a normal
// half.
TEST(HalfSumOfEqualGradients, of_2_to_the_minus_20_is_lost_unscaled_and_exact_with_the_loss_scale) {
  for (const auto order : {Order::ring, Order::tree}) {
    const std::vector<std::vector<float>> unscaled(kRanks, std::vector<float>(8, 0x1p-20F));
    EXPECT_THAT(average(unscaled, order), testing::Each(0));
    const std::vector<std::vector<float>> scaled(kRanks, std::vector<float>(8, 0x1p-20F * kLossScale));
    // k 2^-10 for k up to 64 has 7 bits.
    EXPECT_THAT(average(scaled, order), testing::Each(float_to_half(0x1p-4F)));
  }
}

}  // namespace
}  // namespace ssd
