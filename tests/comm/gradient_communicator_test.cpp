// What every implementation of GradientCommunicator must do, run over MPI on CPU ranks.
#include "comm/gradient_communicator.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <vector>

#include "comm/half.hpp"
#include "core/random.hpp"

namespace ssd {
namespace {

class GradientCommunicatorTest : public testing::Test {
 protected:
  GradientCommunicatorTest() {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    world = MpiComm(copy);
    communicator = make_mpi_gradient_communicator(world);
  }

  // The gradient of a rank: large and small values that every rank can compute.
  static double value_of(int rank, std::size_t i) {
    RandomStream random(static_cast<std::uint64_t>(rank), RandomPurpose::test, 0, i);
    return std::ldexp(random.uniform(-1, 1), static_cast<int>(random.below(12)) - 6);
  }
  double mean_of(std::size_t i) const {
    double sum = 0;
    for (int rank = 0; rank < world.world_size(); ++rank) sum += value_of(rank, i);
    return sum / world.world_size();
  }

  MpiComm world;
  std::unique_ptr<GradientCommunicator> communicator;
};

constexpr std::size_t kCount = 10007;  // no multiple of any block

TEST_F(GradientCommunicatorTest, averages_doubles_to_rounding) {
  std::vector<double> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = value_of(world.rank(), i) * communicator->prescale();
  communicator->start_average(values.data(), kCount, WireType::float64);
  communicator->finish();
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_NEAR(values[i], mean_of(i), 1e-13);  // |values| < 64, 4 additions
}

TEST_F(GradientCommunicatorTest, T6_06_averages_halves_within_the_rounding_of_each_addition_and_equal_on_all_ranks) {
  std::vector<std::uint16_t> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    values[i] = float_to_half(static_cast<float>(value_of(world.rank(), i) * communicator->prescale()));
  }
  communicator->start_average(values.data(), kCount, WireType::float16);
  communicator->finish();
  for (std::size_t i = 0; i < kCount; ++i) {
    // One rounding for each rank's value and each addition, each at most 2^-11 of a magnitude of at most 32.
    const double bound = 2 * world.world_size() * 32 * 0x1p-11 / world.world_size();
    ASSERT_NEAR(half_to_float(values[i]), mean_of(i), bound);
  }
  auto first = values;
  world.broadcast_in_place(std::as_writable_bytes(std::span(first)));
  EXPECT_EQ(first, values);
}

TEST_F(GradientCommunicatorTest, halves_near_the_largest_do_not_overflow) {
  std::vector<std::uint16_t> values(100, float_to_half(static_cast<float>(60000 * communicator->prescale())));
  communicator->start_average(values.data(), values.size(), WireType::float16);
  communicator->finish();
  for (const auto value : values) EXPECT_NEAR(half_to_float(value), 60000, 32 * world.world_size());
}

TEST_F(GradientCommunicatorTest, T5_17_an_infinity_of_one_rank_reaches_all) {
  std::vector<std::uint16_t> values(3, 0);
  if (world.rank() == world.world_size() - 1) values[1] = 0x7C00;
  communicator->start_average(values.data(), values.size(), WireType::float16);
  communicator->finish();
  EXPECT_EQ(values, (std::vector<std::uint16_t>{0, 0x7C00, 0}));
}

TEST_F(GradientCommunicatorTest, several_buckets_of_several_types_end_in_one_finish) {
  std::vector<float> singles(kCount, 1.F);
  std::vector<std::uint16_t> brains(kCount, float_to_bfloat16(static_cast<float>(communicator->prescale())));
  std::vector<double> doubles(3, world.rank());
  for (int repeat = 0; repeat < 3; ++repeat) {
    communicator->start_average(singles.data(), kCount, WireType::float32);
    communicator->start_average(brains.data(), 1, WireType::bfloat16);
    communicator->start_average(doubles.data(), 3, WireType::float64);
    communicator->finish();
  }
  const int n = world.world_size();
  EXPECT_EQ(singles[kCount - 1], std::pow(n, 3));
  EXPECT_EQ(doubles[2], n * (n - 1) / 2 * std::pow(n, 2));
}

}  // namespace
}  // namespace ssd
