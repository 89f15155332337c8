#include "train/benchmark_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ssd {
namespace {

using testing::HasSubstr;

TEST(SummariseRates, has_the_mean_of_the_whole_time_and_the_middle_of_the_iterations) {
  const auto odd = summarise_rates({.5, 1, 2.5}, 8);
  EXPECT_DOUBLE_EQ(odd.mean, 24 / 4.);
  EXPECT_DOUBLE_EQ(odd.median, 8);
  EXPECT_DOUBLE_EQ(odd.least, 3.2);
  EXPECT_DOUBLE_EQ(odd.most, 16);
  EXPECT_DOUBLE_EQ(summarise_rates({1, 4, 2, 3}, 10).median,
                   4);  // of an even number the mean of the middle times
}

TEST(BenchmarkReport, tells_rates_waits_of_each_rank_and_phases) {
  BenchmarkReport report{"training", {20, 21, 19, 22}, 2, {{1.5, .25}, {2, 3}}, {1, 30, 60, 4, 5}};
  const auto text = format_report(report);
  EXPECT_THAT(text,
              HasSubstr("training: 20.0 img/s on 2 ranks, 10.0 each (median 21.0, min 19.0, max 22.0)\n"));
  EXPECT_THAT(text, HasSubstr("   1                 2.00                      3.00\n"));
  EXPECT_THAT(text, HasSubstr("backward       60.00  60.0 %\n"));
  const auto json = json_of(report);
  EXPECT_EQ(json["avg_img/sec"], 20);
  EXPECT_EQ(json["med_img/sec"], 21);
  EXPECT_EQ(json["exposed_comm_ms"], (std::vector<double>{.25, 3}));
  EXPECT_EQ(json["step_ms"]["exposed_comm"], 4);
}

TEST(BenchmarkReport, of_inference_has_rates_and_the_decode) {
  const BenchmarkReport report{"inference", {30, 30, 30, 30}, 1, {}, {}, .75};
  EXPECT_EQ(format_report(report),
            "inference: 30.0 img/s on 1 rank, 30.0 each (median 30.0, min 30.0, max 30.0)\n"
            "decode and NMS: 0.75 ms an image (rank 0)\n");
  EXPECT_FALSE(json_of(report).contains("step_ms"));
  EXPECT_EQ(json_of(report)["decode_ms_per_image"], .75);
}

}  // namespace
}  // namespace ssd
