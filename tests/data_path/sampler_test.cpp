#include "data/sampler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"

namespace ssd {
namespace {

std::vector<std::uint32_t> numbers(std::uint32_t count, std::uint32_t first = 0) {
  std::vector<std::uint32_t> result(count);
  std::iota(result.begin(), result.end(), first);
  return result;
}

// What all ranks together train on in an iteration.
std::vector<std::uint32_t> global_batch(std::uint32_t usable, int world_size, int batch_size,
                                        std::uint32_t epoch, std::uint64_t iteration,
                                        std::uint64_t seed = 1) {
  std::vector<std::uint32_t> all, own;
  for (int rank = 0; rank < world_size; ++rank) {
    TrainSampler(numbers(usable, 100), {batch_size, rank, world_size}, seed)
        .records_of(epoch, iteration, own);
    EXPECT_EQ(own.size(), static_cast<std::size_t>(batch_size));
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

std::vector<std::uint32_t> whole_epoch(std::uint32_t usable, int world_size, int batch_size,
                                       std::uint32_t epoch, std::uint64_t seed = 1) {
  std::vector<std::uint32_t> all;
  const std::uint64_t iterations =
      TrainSampler(numbers(usable), {batch_size, 0, world_size}, seed).iterations_per_epoch();
  for (std::uint64_t i = 0; i < iterations; ++i) {
    const auto batch = global_batch(usable, world_size, batch_size, epoch, i, seed);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

TEST(TrainSampler, T5_16_gives_every_record_once_an_epoch_and_fills_the_tail_from_the_head) {
  for (const std::uint32_t usable : {1U, 2U, 7U, 12U, 13U}) {
    for (const int world_size : {1, 2, 3, 4}) {
      for (const int batch_size : {1, 2, 3}) {
        SCOPED_TRACE(testing::Message()
                     << usable << " records, " << world_size << " ranks of " << batch_size);
        const auto epoch = whole_epoch(usable, world_size, batch_size, 5);
        const auto size = static_cast<std::size_t>(world_size * batch_size);
        ASSERT_EQ(epoch.size(), (usable + size - 1) / size * size);
        const std::vector<std::uint32_t> once(epoch.begin(), epoch.begin() + usable);
        EXPECT_THAT(once, testing::UnorderedElementsAreArray(numbers(usable, 100)));
        for (std::size_t i = usable; i < epoch.size(); ++i) EXPECT_EQ(epoch[i], epoch[i - usable]);
      }
    }
  }
}

TEST(TrainSampler, gives_1_2_and_4_ranks_the_same_samples_of_a_global_batch) {
  for (std::uint64_t iteration = 0; iteration < 4; ++iteration) {
    const auto one = global_batch(29, 1, 8, 2, iteration);
    EXPECT_EQ(global_batch(29, 2, 4, 2, iteration), one);
    EXPECT_EQ(global_batch(29, 4, 2, 2, iteration), one);
  }
}

TEST(TrainSampler, orders_every_epoch_and_seed_anew) {
  const auto epoch = whole_epoch(100, 1, 10, 0);
  EXPECT_NE(epoch, numbers(100, 100));
  EXPECT_NE(epoch, whole_epoch(100, 1, 10, 1));
  EXPECT_NE(epoch, whole_epoch(100, 1, 10, 0, 2));
  EXPECT_EQ(epoch, whole_epoch(100, 1, 10, 0));
}

TEST(TrainSampler, does_not_depend_on_what_was_asked_before) {
  TrainSampler sampler(numbers(50), {8, 0, 1}, 1);
  std::vector<std::uint32_t> first, again;
  sampler.records_of(3, 2, first);
  sampler.records_of(4, 0, again);
  sampler.records_of(3, 2, again);
  EXPECT_EQ(again, first);
}

TEST(TrainSampler, counts_coco_s_iterations) {
  EXPECT_EQ(TrainSampler(numbers(117266), {32, 0, 8}, 0).iterations_per_epoch(), 459U);
}

TEST(TrainSampler, refuses_an_iteration_beyond_the_epoch_and_an_empty_set) {
  std::vector<std::uint32_t> records;
  EXPECT_THROW(TrainSampler(numbers(4), {2, 0, 1}, 1).records_of(0, 2, records), ContractError);
  EXPECT_THROW(TrainSampler({}, {2, 0, 1}, 1), ContractError);
  EXPECT_THROW(TrainSampler(numbers(4), {2, 2, 2}, 1), ContractError);
}

TEST(EvaluationSampler, gives_every_record_to_one_rank_and_the_same_batches_for_any_number_of_ranks) {
  for (const std::uint32_t count : {0U, 1U, 6U, 7U, 23U}) {
    for (const int world_size : {1, 2, 3, 8}) {
      SCOPED_TRACE(testing::Message() << count << " records, " << world_size << " ranks");
      std::vector<std::uint32_t> seen, records;
      for (int rank = 0; rank < world_size; ++rank) {
        const EvaluationSampler sampler(numbers(count), {3, rank, world_size});
        for (std::uint64_t own = 0; own < sampler.own_batch_count(); ++own) {
          const std::uint64_t batch = sampler.batch_of(own);
          EXPECT_EQ(batch % static_cast<std::uint64_t>(world_size), static_cast<std::uint64_t>(rank));
          const int real = sampler.records_of(batch, records);
          ASSERT_EQ(records.size(), 3U);
          for (int i = 0; i < 3; ++i) {
            const auto expected =
                std::min<std::uint64_t>(batch * 3 + static_cast<std::uint64_t>(i), count - 1);
            EXPECT_EQ(records[static_cast<std::size_t>(i)], expected);
          }
          seen.insert(seen.end(), records.begin(), records.begin() + real);
        }
      }
      EXPECT_THAT(seen, testing::UnorderedElementsAreArray(numbers(count)));
    }
  }
}

}  // namespace
}  // namespace ssd
