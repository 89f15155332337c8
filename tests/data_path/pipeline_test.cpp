#include "data/pipeline.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>

#include "core/error.hpp"

namespace ssd {
namespace {

using std::chrono::milliseconds;

constexpr int kBatchSize = 3;

// Batch b has the records 3b, 3b + 1, 3b + 2.
BatchPipeline::Plan count_up(int batches) {
  return [batches, planned = 0](Batch& batch) mutable {
    if (planned == batches) return false;
    batch.iteration = static_cast<std::uint64_t>(planned);
    batch.record_indices.clear();
    for (int i = 0; i < kBatchSize; ++i) {
      batch.record_indices.push_back(static_cast<std::uint32_t>(planned * kBatchSize + i));
    }
    ++planned;
    return true;
  };
}

std::vector<BatchPipeline::Fill> for_each_thread(int threads, const BatchPipeline::Fill& fill) {
  return std::vector<BatchPipeline::Fill>(static_cast<std::size_t>(threads), fill);
}

// As many boxes as the record's number modulo 4, with its number as their label.
void mark(Batch& batch, std::size_t sample, SampleBoxes& boxes) {
  const std::uint32_t record = batch.record_indices[sample];
  batch.images[sample * kSampleBytes] = static_cast<std::uint8_t>(record);
  boxes.ltrb.assign(record % 4, BoxLtrb{0, 0, 0.5F, static_cast<float>(record)});
  boxes.labels.assign(record % 4, static_cast<std::int32_t>(record));
}

TEST(BatchPipeline, keeps_the_order_for_any_number_of_threads) {
  for (const int threads : {1, 4}) {
    const auto slow_mark = [](Batch& batch, std::size_t sample, SampleBoxes& boxes) {
      if (sample == 0) std::this_thread::sleep_for(milliseconds(2));  // the first ends last
      mark(batch, sample, boxes);
    };
    BatchPipeline pipeline(kBatchSize, 0, count_up(20), for_each_thread(threads, slow_mark),
                           {.threads = threads});
    for (std::uint64_t number = 0; number < 20; ++number) {
      const auto batch = pipeline.next();
      ASSERT_TRUE(batch);
      EXPECT_EQ((*batch)->iteration, number);
      for (std::size_t i = 0; i < kBatchSize; ++i) {
        EXPECT_EQ((*batch)->images[i * kSampleBytes], number * kBatchSize + i);
      }
    }
    EXPECT_FALSE(pipeline.next());
    EXPECT_FALSE(pipeline.next());
  }
}

TEST(BatchPipeline, pads_boxes_to_the_longest_row_of_the_batch) {
  BatchPipeline pipeline(kBatchSize, 0, count_up(2), for_each_thread(1, mark), {});
  {
    const auto batch = pipeline.next();  // records 0 1 2
    EXPECT_EQ((*batch)->boxes_per_sample, 2);
    EXPECT_EQ((*batch)->labels, (std::vector<std::int32_t>{0, 0, 1, 0, 2, 2}));
    EXPECT_EQ((*batch)->boxes_ltrb, (std::vector<float>{0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0.5F, 1,
                                                        0, 0, 0, 0, 0, 0, 0.5F, 2, 0, 0, 0.5F, 2}));
  }
  const auto batch = pipeline.next();  // records 3 4 5
  EXPECT_EQ((*batch)->boxes_per_sample, 3);
  EXPECT_EQ((*batch)->labels, (std::vector<std::int32_t>{3, 3, 3, 0, 0, 0, 5, 0, 0}));
}

TEST(BatchPipeline, has_at_least_one_column_of_boxes) {
  BatchPipeline pipeline(kBatchSize, 0, count_up(1),
                         for_each_thread(1, [](Batch&, std::size_t, SampleBoxes&) {}), {});
  const auto batch = pipeline.next();
  EXPECT_EQ((*batch)->boxes_per_sample, 1);
  EXPECT_EQ((*batch)->boxes_ltrb, std::vector<float>(kBatchSize * 4, 0.0F));
}

TEST(BatchPipeline, uses_the_memory_it_was_given_again) {
  int allocations = 0;
  PipelineOptions options{.threads = 2, .prefetch_batches = 2};
  options.allocate = [&](std::size_t bytes) {
    ++allocations;
    EXPECT_EQ(bytes, kBatchSize * kSampleBytes);
    return allocate_on_heap(bytes);
  };
  std::set<const std::uint8_t*> blocks;
  BatchPipeline pipeline(kBatchSize, 0, count_up(30), for_each_thread(2, mark), options);
  while (const auto batch = pipeline.next()) blocks.insert((*batch)->images);
  EXPECT_EQ(allocations, 3);
  EXPECT_LE(blocks.size(), 3U);
}

TEST(BatchPipeline, does_not_touch_a_batch_that_is_lent_out) {
  BatchPipeline pipeline(kBatchSize, 0, count_up(30), for_each_thread(2, mark), {.threads = 2});
  const auto held = pipeline.next();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(pipeline.next());
  for (std::size_t i = 0; i < kBatchSize; ++i) EXPECT_EQ((*held)->images[i * kSampleBytes], i);
  EXPECT_EQ((*held)->iteration, 0U);
}

TEST(BatchPipeline, refuses_to_wait_for_itself) {
  BatchPipeline pipeline(kBatchSize, 0, count_up(30), for_each_thread(1, mark), {.prefetch_batches = 1});
  const auto first = pipeline.next();
  const auto second = pipeline.next();
  EXPECT_THROW((void)pipeline.next(), ContractError);
}

TEST(BatchPipeline, rethrows_a_failure_after_the_batches_before_it_and_again) {
  for (const int threads : {1, 4}) {
    const auto fail_at_7_and_8 = [](Batch& batch, std::size_t sample, SampleBoxes& boxes) {
      if (batch.record_indices[sample] >= 7)
        throw std::runtime_error(std::to_string(batch.record_indices[sample]));
      mark(batch, sample, boxes);
    };
    BatchPipeline pipeline(kBatchSize, 0, count_up(20), for_each_thread(threads, fail_at_7_and_8),
                           {.threads = threads});
    EXPECT_EQ((*pipeline.next())->iteration, 0U);
    EXPECT_EQ((*pipeline.next())->iteration, 1U);
    for (int again = 0; again < 2; ++again) {
      try {
        (void)pipeline.next();
        FAIL() << "no exception";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "7");  // the first that failed, whichever thread was faster
      }
    }
  }
}

TEST(BatchPipeline, rethrows_a_failure_of_the_plan) {
  const auto plan = [first = true](Batch& batch) mutable {
    if (!std::exchange(first, false)) throw std::runtime_error("no plan");
    batch.record_indices = {1, 2, 3};
    return true;
  };
  BatchPipeline pipeline(kBatchSize, 0, plan, for_each_thread(2, mark), {.threads = 2});
  EXPECT_TRUE(pipeline.next());
  EXPECT_THROW((void)pipeline.next(), std::runtime_error);
}

TEST(BatchPipeline, goes_away_at_any_moment) {
  const auto slow = [](Batch& batch, std::size_t sample, SampleBoxes& boxes) {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    mark(batch, sample, boxes);
  };
  for (int round = 0; round < 60; ++round) {
    BatchPipeline pipeline(kBatchSize, 0, count_up(1000), for_each_thread(3, slow), {.threads = 3});
    for (int i = 0; i < round % 4; ++i) (void)pipeline.next();
    std::this_thread::sleep_for(std::chrono::microseconds(100 * (round % 7)));
  }
}

TEST(BatchPipeline, says_how_long_the_taker_waited) {
  const auto slow = [](Batch& batch, std::size_t sample, SampleBoxes& boxes) {
    std::this_thread::sleep_for(milliseconds(40));
    mark(batch, sample, boxes);
  };
  BatchPipeline pipeline(kBatchSize, 0, count_up(3), for_each_thread(3, slow),
                         {.threads = 3, .prefetch_batches = 3});
  EXPECT_GE(pipeline.next()->waited_ms(), 30);  // 40 less what passed since the threads started
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_LT(pipeline.next()->waited_ms(), 30);  // made meanwhile
}

double used_cpu_ms() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) * 1e-3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

TEST(BatchPipeline, sleeps_when_there_is_nothing_to_do) {
  BatchPipeline pipeline(kBatchSize, 0, count_up(100), for_each_thread(8, mark), {.threads = 8});
  ASSERT_TRUE(pipeline.next());
  std::this_thread::sleep_for(milliseconds(50));
  const double before = used_cpu_ms();
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_LT(used_cpu_ms() - before, 20);  // one spinning thread would have used 200
}

}  // namespace
}  // namespace ssd
