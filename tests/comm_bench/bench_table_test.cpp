#include "comm_bench/bench_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ssd {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const BenchSetting kEight{
    8, 1, "MPI (Open MPI v4.1.4) in host memory", "SSD300 with resnet50, 81 classes", {5, 20}};
const BenchmarkCase kMebibyte{{{WireType::float16, 524288}}};
const BenchmarkCase kGradient{{{WireType::float16, 22858934}, {WireType::float32, 35968}}, true};

TEST(BenchTable, has_size_count_type_time_bandwidths_and_errors) {
  EXPECT_EQ(format_row(bench_row(kMebibyte, {.001048576, 0}, 8)),
            "     1048576       524288       FP16       1048.6     1.000     1.750         0\n");
  EXPECT_EQ(format_row(bench_row(kGradient, {.0458617, 3}, 8)),
            "    45861740     22894902  FP16+FP32      45861.7     1.000     1.750         3  gradient\n");
}

TEST(BenchTable, has_a_head_of_comments_in_its_columns) {
  const auto head = format_head(kEight);
  EXPECT_THAT(
      head,
      StartsWith("# 8 ranks on 1 node, averages by MPI (Open MPI v4.1.4) in host memory, 20 timed after 5 of "
                 "warmup\n# gradient: SSD300 with resnet50, 81 classes; "));
  EXPECT_THAT(head,
              HasSubstr("\n#       size        count       type         time     algbw     busbw    errors\n"
                        "#        (B)     (values)                    (us)    (GB/s)    (GB/s)          \n"));
}

TEST(BenchVerdict, is_ok_with_the_gradients_time) {
  const std::vector rows{bench_row(kMebibyte, {.001, 0}, 8), bench_row(kGradient, {.0458617, 0}, 8)};
  EXPECT_TRUE(all_right(rows));
  EXPECT_EQ(format_verdict(kEight, rows),
            "ok: 2 averages, no wrong value; the gradient in FP16+FP32: 45.86 ms, busbw 1.75 GB/s");
}

TEST(BenchVerdict, is_failed_with_the_number_of_wrong_values) {
  const std::vector rows{bench_row(kMebibyte, {.001, 1}, 8), bench_row(kMebibyte, {.001, 0}, 8),
                         bench_row(kGradient, {.04, 7}, 8)};
  EXPECT_FALSE(all_right(rows));
  EXPECT_EQ(
      format_verdict(kEight, rows),
      "FAILED: 8 wrong values in 2 of 3 averages, 8 ranks on 1 node by MPI (Open MPI v4.1.4) in host memory");
  EXPECT_EQ(bench_json(kEight, rows)["ok"], false);
}

TEST(BenchVerdict, of_one_rank_says_that_nothing_travelled) {
  auto one = kEight;
  one.world_size = 1;
  EXPECT_EQ(
      format_verdict(one, std::vector{bench_row(kGradient, {.04, 0}, 1)}),
      "ok: 1 average, no wrong value; one rank alone, so nothing travelled: start it by mpirun or srun");
}

TEST(BenchJson, holds_the_table) {
  const auto json = bench_json(kEight, std::vector{bench_row(kGradient, {.0458617, 0}, 8)});
  EXPECT_EQ(json["ranks"], 8);
  EXPECT_EQ(json["iterations"], 20);
  EXPECT_EQ(json["rows"][0]["size"], 45861740);
  EXPECT_EQ(json["rows"][0]["count"], 22894902);
  EXPECT_EQ(json["rows"][0]["type"], "FP16+FP32");
  EXPECT_EQ(json["rows"][0]["gradient"], true);
  EXPECT_DOUBLE_EQ(json["rows"][0]["busbw_gb_per_s"].get<double>(),
                   json["rows"][0]["algbw_gb_per_s"].get<double>() * 1.75);
  EXPECT_EQ(json["ok"], true);
}

}  // namespace
}  // namespace ssd
