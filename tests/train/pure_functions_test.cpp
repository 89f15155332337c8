#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "train/bucket_plan.hpp"
#include "train/learning_rate.hpp"
#include "train/loss_scaler.hpp"

namespace ssd {
namespace {

// Golden schedule: tests/data/golden/README.txt, section 10.
TEST(LearningRate, equals_the_golden_schedule) {
  std::ifstream stream(SSD_TEST_DATA "/golden/lr.json");
  const auto golden = nlohmann::json::parse(stream);
  int points = 0;
  for (const auto& combo : golden["combos"]) {
    LearningRateOptions options;
    options.base = combo["base_lr"];
    options.world_size = combo["ranks"];
    options.batch_size = combo["batch_per_rank"];
    options.warmup_iterations = combo["warmup"].is_null() ? 0 : combo["warmup"].get<std::int64_t>();
    options.milestone_epochs = combo["milestones"].get<std::vector<int>>();
    EXPECT_NEAR(full_learning_rate(options), combo["lr0"], 1e-12 * combo["lr0"].get<double>());
    for (const auto& point : combo["points"]) {
      const double wanted = point["lr"];
      EXPECT_NEAR(learning_rate(options, point["epoch"], point["iteration"]), wanted, 1e-12 * wanted)
          << point;
      ++points;
    }
  }
  EXPECT_GT(points, 50);
}

// T1-08 of the reports of users: the full rate is reached when the warmup ends.
TEST(LearningRate, T1_08_reaches_the_full_rate_at_the_end_of_the_warmup) {
  const LearningRateOptions options{
      .base = 2.6e-3, .world_size = 1, .batch_size = 32, .warmup_iterations = 4};
  EXPECT_EQ(learning_rate(options, 0, 0), 0);
  EXPECT_DOUBLE_EQ(learning_rate(options, 0, 1), .00065);
  EXPECT_DOUBLE_EQ(learning_rate(options, 0, 3), .00195);
  EXPECT_DOUBLE_EQ(learning_rate(options, 0, 4), .0026);
}

TEST(PlanBuckets, first_small_then_up_to_the_limit_and_large_entries_alone) {
  const BucketOptions options{.first_bucket_bytes = 10, .bucket_bytes = 100};
  const std::vector<std::int64_t> bytes{6, 4, 60, 40, 1, 500, 20};
  EXPECT_EQ(plan_buckets(bytes, options), (std::vector<Bucket>{{0, 2}, {2, 4}, {4, 5}, {5, 6}, {6, 7}}));
  EXPECT_EQ(plan_buckets(std::vector<std::int64_t>{50}, options), (std::vector<Bucket>{{0, 1}}));
  EXPECT_TRUE(plan_buckets({}, options).empty());
}

// T6-05 of the reports of users: the constants of the reference's scaler.
TEST(LossScalerTest, T6_05_halves_on_overflow_and_doubles_after_2000_good_steps) {
  LossScaler scaler(LossScaling::dynamic, torch::kCPU);
  EXPECT_EQ(scaler.state().scale, 65536);
  scaler.found_overflow().fill_(1);
  scaler.update();
  EXPECT_EQ(scaler.state().scale, 32768);
  EXPECT_EQ(scaler.state().skipped_steps, 1);
  for (int i = 0; i < 1999; ++i) scaler.update();
  EXPECT_EQ(scaler.state().scale, 32768);
  scaler.update();
  EXPECT_EQ(scaler.state().scale, 65536);
  EXPECT_EQ(scaler.state().good_steps, 0);
}

TEST(LossScalerTest, T1_15_goes_on_from_a_stored_state) {
  LossScaler scaler(LossScaling::dynamic, torch::kCPU);
  scaler.set_state({.scale = 1024, .good_steps = 1999, .skipped_steps = 7});
  scaler.update();
  EXPECT_EQ(scaler.state().scale, 2048);
  EXPECT_EQ(scaler.state().skipped_steps, 7);
}

}  // namespace
}  // namespace ssd
