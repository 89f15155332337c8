// The check of averages, against communicators that are right and communicators that are wrong in a known
// way; and what is computed from a measurement.
#include "comm/comm_benchmark.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "comm/half.hpp"
#include "comm/known_values.hpp"

namespace ssd {
namespace {

using Values = std::vector<float>;

// In which way 1 / ranks comes in: the caller multiplies before the sum (MPI), or the communicator after it.
enum class Division { before, after };

// Rank 0 of a world whose other ranks put in the known values, too: each sum is rounded to the type.
class PlayedCommunicator : public GradientCommunicator {
 public:
  PlayedCommunicator(
      int world_size, Division division, std::function<void(Values&)> spoil = [](Values&) {})
      : world_size_(world_size), division_(division), spoil_(std::move(spoil)) {}

  double prescale() const override { return division_ == Division::before ? 1.0 / world_size_ : 1; }

  void start_average(void* data, std::size_t count, WireType type) override {
    const auto bytes = count * wire_type_bytes(type);
    auto sums = decoded({static_cast<const std::byte*>(data), bytes}, type);
    for (int rank = 1; rank < world_size_; ++rank) {
      const auto terms = decoded(KnownValues(type, rank, world_size_, prescale()).own(), type);
      for (std::size_t i = 0; i < count; ++i) sums[i] = rounded(sums[i] + terms[i % terms.size()], type);
    }
    if (division_ == Division::after) {
      for (auto& sum : sums) sum = rounded(sum / static_cast<float>(world_size_), type);
    }
    spoil_(sums);
    encode(sums, type, static_cast<std::byte*>(data));
  }

  void finish() override {}

 private:
  static float rounded(float value, WireType type) {
    return type == WireType::float16 ? half_to_float(float_to_half(value)) : value;
  }
  static Values decoded(std::span<const std::byte> bytes, WireType type) {
    Values values(bytes.size() / wire_type_bytes(type));
    if (type == WireType::float32) std::memcpy(values.data(), bytes.data(), bytes.size());
    if (type == WireType::float16) {
      halves_to_floats(reinterpret_cast<const std::uint16_t*>(bytes.data()), values.data(), values.size());
    }
    return values;
  }
  static void encode(const Values& values, WireType type, std::byte* bytes) {
    if (type == WireType::float32) std::memcpy(bytes, values.data(), values.size() * sizeof(float));
    if (type == WireType::float16) {
      floats_to_halves(values.data(), 1, reinterpret_cast<std::uint16_t*>(bytes), values.size());
    }
  }

  int world_size_;
  Division division_;
  std::function<void(Values&)> spoil_;
};

constexpr std::size_t kCount = 300007;  // more than is filled in one piece, and no multiple of anything

std::size_t wrong_of(PlayedCommunicator communicator, int world_size, WireType type = WireType::float16) {
  const BenchmarkCase what{{{type, kCount}}};
  const auto buffer = make_host_buffer(what.buffer_bytes());
  return count_wrong_averages(communicator, *buffer, what, 0, world_size);
}

TEST(CountWrongAverages, is_none_for_right_averages_of_any_number_of_ranks) {
  for (const auto type : {WireType::float16, WireType::float32}) {
    for (const auto division : {Division::before, Division::after}) {
      for (const int ranks : {1, 2, 3, 8, 31, 128}) {
        EXPECT_EQ(wrong_of({ranks, division}, ranks, type), 0U) << ranks << " " << wire_type_name(type);
      }
    }
  }
}

TEST(CountWrongAverages, finds_one_value_that_is_off_by_its_last_bit_where_averages_are_exact) {
  const auto half = [](Values& values) {
    values[kCount - 1] = half_to_float(static_cast<std::uint16_t>(float_to_half(values[kCount - 1]) ^ 1));
  };
  const auto single = [](Values& values) { values[262144] = std::nextafter(values[262144], 100.F); };
  EXPECT_EQ(wrong_of({8, Division::before, half}, 8, WireType::float16), 1U);
  EXPECT_EQ(wrong_of({8, Division::before, single}, 8, WireType::float32), 1U);
}

TEST(CountWrongAverages, finds_values_beyond_the_bound_where_averages_are_rounded_and_none_within) {
  const auto bound = static_cast<float>(KnownValues(WireType::float32, 0, 3, 1).tolerance());
  ASSERT_GT(bound, 0);
  // Right averages are within a third of the bound here: of the three roundings that it allows for, the last
  // alone.
  const auto spoil = [&](float by) { return [by](Values& values) { values[5] += by; }; };
  EXPECT_EQ(wrong_of({3, Division::after, spoil(2 * bound)}, 3, WireType::float32), 1U);
  EXPECT_EQ(wrong_of({3, Division::after, spoil(bound / 2)}, 3, WireType::float32), 0U);
}

TEST(CountWrongAverages, finds_what_is_no_number) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(wrong_of({3, Division::before, [=](Values& values) { values[7] = value; }}, 3), 1U);
  }
}

// The values are 33 whole numbers: a wrong average is right by chance about once in 33.
TEST(CountWrongAverages, finds_a_missing_rank_a_missing_division_and_parts_in_wrong_places) {
  const std::size_t most = kCount * 9 / 10;
  EXPECT_GT(wrong_of({3, Division::before}, 4), most);  // the last rank is left out
  EXPECT_GT(wrong_of({4, Division::before,
                      [](Values& v) {
                        for (auto& x : v) x *= 4;
                      }},
                     4),
            most);
  EXPECT_GT(
      wrong_of({4, Division::before, [](Values& v) { std::rotate(v.begin(), v.begin() + 4096, v.end()); }},
               4),
      most);
  const auto with_a_hole = [](Values& v) { std::fill_n(v.begin() + 1000, 2000, 0.F); };
  EXPECT_GT(wrong_of({4, Division::before, with_a_hole}, 4), 1800U);
  EXPECT_LE(wrong_of({4, Division::before, with_a_hole}, 4), 2000U);
}

TEST(CountWrongAverages, looks_at_every_part_of_a_gradient) {
  const BenchmarkCase what{{{WireType::float16, 1001}, {WireType::float32, 77}}, true};
  const auto buffer = make_host_buffer(what.buffer_bytes());
  PlayedCommunicator right(4, Division::before);
  EXPECT_EQ(count_wrong_averages(right, *buffer, what, 0, 4), 0U);
  PlayedCommunicator wrong(4, Division::before, [](Values& values) { values.back() += 1; });
  EXPECT_EQ(count_wrong_averages(wrong, *buffer, what, 0, 4), 2U);
}

TEST(KnownValuesTest, are_compared_exactly_for_a_power_of_two_of_ranks_and_within_the_stated_bound_else) {
  const auto tolerance = [](WireType type, int ranks) { return KnownValues(type, 0, ranks, 1).tolerance(); };
  for (const int ranks : {1, 2, 4, 8, 128}) EXPECT_EQ(tolerance(WireType::float16, ranks), 0);
  EXPECT_EQ(tolerance(WireType::float16, 256), 256 * 16 * 0x1p-11);
  EXPECT_EQ(tolerance(WireType::float32, 256), 0);
  EXPECT_EQ(tolerance(WireType::float16, 3), 3 * 16 * 0x1p-11);
  EXPECT_EQ(tolerance(WireType::float32, 3), 3 * 16 * 0x1p-24);
}

TEST(MeasureTest, of_a_world_of_one_is_a_time_without_wrong_values) {
  const BenchmarkCase what{{{WireType::float16, 1000}}};
  const auto buffer = make_host_buffer(what.buffer_bytes());
  PlayedCommunicator communicator(1, Division::after);
  const auto result = measure(MpiComm(), communicator, *buffer, what, {1, 3});
  EXPECT_EQ(result.wrong_values, 0U);
  EXPECT_GT(result.seconds, 0);
  PlayedCommunicator wrong(1, Division::after, [](Values& values) { values[3] += 1; });
  EXPECT_EQ(measure(MpiComm(), wrong, *buffer, what, {0, 1}).wrong_values, 1U);
}

TEST(BenchmarkCaseTest, counts_values_and_bytes_of_its_parts) {
  const BenchmarkCase what{{{WireType::float16, 1001}, {WireType::float32, 77}}, true};
  EXPECT_EQ(what.count(), 1078U);
  EXPECT_EQ(what.bytes(), 2002U + 308U);
  EXPECT_EQ(what.buffer_bytes(), 2048U + 320U);  // each part from a multiple of 64 bytes
  EXPECT_EQ(what.type_name(), "FP16+FP32");
  EXPECT_EQ((BenchmarkCase{{{WireType::float32, 1}, {WireType::float32, 1}}}.type_name()), "FP32");
}

// 1 GB in half a second is 2 GB/s; over 8 ranks 2 * 7 / 8 of it cross each link (nccl-tests,
// doc/PERFORMANCE.md).
TEST(Bandwidth, is_that_of_nccl_tests) {
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(1000000000, .5), 2);
  EXPECT_DOUBLE_EQ(bus_bandwidth(2, 8), 3.5);
  EXPECT_EQ(bus_bandwidth(2, 1), 0);
  EXPECT_EQ(algorithm_bandwidth(8, 0), 0);
}

TEST(DoubledSizes, go_from_the_least_to_the_most) {
  EXPECT_EQ(doubled_sizes(8, 64), (std::vector<std::size_t>{8, 16, 32, 64}));
  EXPECT_EQ(doubled_sizes(8, 63), (std::vector<std::size_t>{8, 16, 32}));
  EXPECT_EQ(doubled_sizes(8, 8), (std::vector<std::size_t>{8}));
  EXPECT_EQ(doubled_sizes(8, 256 << 20).size(), 26U);
}

}  // namespace
}  // namespace ssd
