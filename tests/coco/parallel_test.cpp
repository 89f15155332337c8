#include "coco/parallel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

#include "coco/score_sort.hpp"
#include "core/random.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

TEST(ParallelFor, calls_the_body_once_for_each_index) {
  for (const int threads : {0, 1, 2, 7}) {
    for (const std::size_t count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> calls(count);
      parallel_for(count, threads, [&](std::size_t i) { ++calls[i]; });
      EXPECT_TRUE(std::all_of(calls.begin(), calls.end(), [](const auto& n) { return n == 1; }));
    }
  }
}

TEST(ParallelFor, throws_what_the_body_threw_and_begins_no_more) {
  for (const int threads : {1, 4}) {
    std::atomic<std::size_t> calls = 0;
    EXPECT_EQ(message_of<std::runtime_error>([&] {
                parallel_for(1000000, threads, [&](std::size_t i) {
                  ++calls;
                  if (i >= 5) throw std::runtime_error(i == 5 ? "five" : "later");
                });
              }),
              "five");
    EXPECT_LT(calls, 1000U);
  }
}

struct Scored {
  double score;
  int place;
  friend bool operator==(const Scored&, const Scored&) = default;
};

TEST(ScoreSorter, sorts_as_a_stable_sort_does) {
  RandomStream random(3, RandomPurpose::test, 0, 0);
  ScoreSorter<Scored> sorter;
  for (int round = 0; round < 400; ++round) {
    std::vector<Scored> records(random.below(round % 2 == 0 ? 40 : 3000));
    const auto kind = random.below(6);
    for (std::size_t i = 0; i < records.size(); ++i) {
      double score = random.uniform();
      if (kind == 1) score = 0.1 * random.below(5);          // ties
      if (kind == 2) score = score * score * score * score;  // crowded at one end
      if (kind == 3) score = 0.25;
      if (kind == 4)
        score = random.below(2) == 0 ? 1e308 * (score - 0.5) * 2 : score;  // a range that overflows
      if (kind == 5) score = random.below(50) == 0 ? 1e9 : score * 1e-9;   // all but a few in one bucket
      records[i] = {score, static_cast<int>(i)};
    }
    auto expected = records;
    std::stable_sort(expected.begin(), expected.end(),
                     [](const Scored& a, const Scored& b) { return a.score > b.score; });
    sorter.sort(records);
    ASSERT_EQ(records, expected) << "round " << round << ", kind " << kind;
  }
}

}  // namespace
}  // namespace ssd
