// The contract of GradientCommunicator, the same for every implementation (communicator_under_test.hpp).
#include "comm/gradient_communicator.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <vector>

#include "comm/communicator_under_test.hpp"
#include "comm/half.hpp"
#include "core/random.hpp"
#include "support/world.hpp"

namespace ssd {
namespace {

constexpr std::size_t kCount = 10007;  // no multiple of any block

class GradientCommunicatorTest : public testing::TestWithParam<test::Implementation> {
 protected:
  void SetUp() override {
    world = test::copy_of_world();
    const auto& implementation = GetParam();
    if (implementation.can_run != nullptr && !implementation.can_run(world)) {
      GTEST_SKIP() << implementation.why_not;
    }
    subject = implementation.make(world);
    communicator = subject->make();
  }

  void TearDown() override {
    communicator.reset();
    if (subject != nullptr) {
      EXPECT_EQ(subject->complaints(), std::vector<std::string>{});
    }
  }

  // A buffer that will hold the values, times prescale.
  void* upload(std::vector<double> values) {
    for (auto& value : values) value *= communicator->prescale();
    return upload_as_they_are(values);
  }
  void* upload_halves(const std::vector<double>& values, std::uint16_t (*to_16_bits)(float) = float_to_half) {
    std::vector<std::uint16_t> halves;
    for (const auto value : values)
      halves.push_back(to_16_bits(static_cast<float>(value * communicator->prescale())));
    return upload_as_they_are(halves);
  }
  template <class T>
  void* upload_as_they_are(const std::vector<T>& values) {
    void* buffer = subject->allocate(values.size() * sizeof(T));
    subject->upload(buffer, values.data(), values.size() * sizeof(T));
    return buffer;
  }

  template <class T>
  std::vector<T> download(const void* buffer, std::size_t count) {
    std::vector<T> values(count);
    subject->download(values.data(), buffer, count * sizeof(T));
    return values;
  }

  // The gradient of a rank: large and small values, below 32, that every rank can compute.
  static double value_of(int rank, std::size_t i) {
    RandomStream random(static_cast<std::uint64_t>(rank), RandomPurpose::test, 0, i);
    return std::ldexp(random.uniform(-1, 1), static_cast<int>(random.below(12)) - 6);
  }
  std::vector<double> own_values() const {
    std::vector<double> values(kCount);
    for (std::size_t i = 0; i < kCount; ++i) values[i] = value_of(world.rank(), i);
    return values;
  }
  double mean_of(std::size_t i) const {
    double sum = 0;
    for (int rank = 0; rank < world.world_size(); ++rank) sum += value_of(rank, i);
    return sum / world.world_size();
  }

  MpiComm world;
  std::unique_ptr<test::CommunicatorUnderTest> subject;
  std::unique_ptr<GradientCommunicator> communicator;
};

INSTANTIATE_TEST_SUITE_P(Of, GradientCommunicatorTest, testing::ValuesIn(test::implementations()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(GradientCommunicatorTest, averages_doubles_to_rounding) {
  void* buffer = upload(own_values());
  communicator->start_average(buffer, kCount, WireType::float64);
  communicator->finish();
  const auto values = download<double>(buffer, kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    ASSERT_NEAR(values[i], mean_of(i), 1e-13);  // |values| < 32, 4 additions
}

TEST_P(GradientCommunicatorTest, T6_06_averages_halves_within_their_roundings_and_equal_on_all_ranks) {
  void* buffer = upload_halves(own_values());
  communicator->start_average(buffer, kCount, WireType::float16);
  communicator->finish();
  const auto values = download<std::uint16_t>(buffer, kCount);
  // Roundings of at most 2^-11 of a magnitude of at most 32: of the values, of 1/ranks and of the product,
  // and one for each addition.
  const double bound = (world.world_size() + 2) * 32 * 0x1p-11;
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_NEAR(half_to_float(values[i]), mean_of(i), bound);
  auto first = values;
  world.broadcast_in_place(std::as_writable_bytes(std::span(first)));
  EXPECT_EQ(first, values);
}

TEST_P(GradientCommunicatorTest, halves_near_the_largest_do_not_overflow) {
  void* buffer = upload_halves(std::vector<double>(100, 60000));
  communicator->start_average(buffer, 100, WireType::float16);
  communicator->finish();
  for (const auto value : download<std::uint16_t>(buffer, 100)) {
    EXPECT_NEAR(half_to_float(value), 60000, 32 * world.world_size());  // halves are 32 apart there
  }
}

TEST_P(GradientCommunicatorTest, T5_17_an_infinity_of_one_rank_reaches_all) {
  std::vector<std::uint16_t> values(3, 0);
  if (world.rank() == world.world_size() - 1) values[1] = 0x7C00;
  void* buffer = upload_as_they_are(values);
  communicator->start_average(buffer, values.size(), WireType::float16);
  communicator->finish();
  EXPECT_EQ(download<std::uint16_t>(buffer, 3), (std::vector<std::uint16_t>{0, 0x7C00, 0}));
}

TEST_P(GradientCommunicatorTest, several_buckets_of_several_types_end_in_one_finish) {
  for (int step = 0; step < 3; ++step) {
    const double own = world.rank() + step, mean = (world.world_size() - 1) / 2. + step;
    std::vector<float> floats(kCount, static_cast<float>(own * communicator->prescale()));
    void* singles = upload_as_they_are(floats);
    void* brains = upload_halves({own}, float_to_bfloat16);
    void* doubles = upload({own, own, own});
    communicator->start_average(singles, kCount, WireType::float32);
    communicator->start_average(brains, 1, WireType::bfloat16);
    communicator->start_average(doubles, 3, WireType::float64);
    communicator->finish();
    // 1/ranks is a power of two here, so that everything is exact.
    EXPECT_EQ(download<float>(singles, kCount)[kCount - 1], static_cast<float>(mean));
    EXPECT_EQ(bfloat16_to_float(download<std::uint16_t>(brains, 1)[0]), static_cast<float>(mean));
    EXPECT_EQ(download<double>(doubles, 3), std::vector<double>(3, mean));
  }
}

TEST_P(GradientCommunicatorTest, one_buffer_is_averaged_again_in_every_step) {
  void* buffer = upload(std::vector<double>(kCount, world.rank()));
  for (int step = 0; step < 4; ++step) {
    communicator->start_average(buffer, kCount, WireType::float64);
    communicator->finish();
    const auto values = download<double>(buffer, kCount);
    ASSERT_EQ(values, std::vector<double>(kCount, (world.world_size() - 1) / 2.)) << "step " << step;
    auto scaled = values;
    for (auto& value : scaled) value *= communicator->prescale();
    subject->upload(buffer, scaled.data(), kCount * sizeof(double));
  }
}

TEST_P(GradientCommunicatorTest, a_step_without_buckets_ends) {
  communicator->finish();
  communicator->finish();
}

TEST_P(GradientCommunicatorTest, is_destroyed_with_averages_in_flight_and_made_again) {
  for (int repeat = 0; repeat < 3; ++repeat) {
    void* buffer = upload(own_values());
    for (int i = 0; i < 5; ++i) communicator->start_average(buffer, kCount, WireType::float64);
    communicator.reset();
    communicator = subject->make();
  }
  void* buffer = upload(own_values());
  communicator->start_average(buffer, kCount, WireType::float64);
  communicator->finish();
  EXPECT_NEAR(download<double>(buffer, kCount)[0], mean_of(0), 1e-13);
}

}  // namespace
}  // namespace ssd
