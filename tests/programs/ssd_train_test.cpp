// The program as a user starts it: mpirun, real photos, whole runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/file_names.hpp"
#include "checkpoint/state_dict.hpp"
#include "programs/trained_set.hpp"

namespace ssd {
namespace {

using test::expect_equal;
using test::lines_with;
using test::packed_photos;
using test::run_ranks;
using test::short_training;
using test::tensors_of;

TEST(SsdTrain, two_runs_of_one_command_give_the_same_bits_and_another_seed_does_not) {
  const TemporaryFolder folder;
  for (const int ranks : {1, 2, 4}) {
    const auto a = folder.path() / fmt::format("a{}", ranks), b = folder.path() / fmt::format("b{}", ranks);
    const auto first = run_ranks(ranks, short_training(a, 1));
    ASSERT_EQ(first.exit_code, 0) << first.err;
    ASSERT_EQ(run_ranks(ranks, short_training(b, 1)).exit_code, 0);
    expect_equal(tensors_of(a / "epoch_0.pt"), tensors_of(b / "epoch_0.pt"));
  }
  auto other_seed = short_training(folder.path() / "c", 1);
  std::replace(other_seed.begin(), other_seed.end(), std::string("3"), std::string("4"));
  ASSERT_EQ(run_ranks(2, other_seed).exit_code, 0);
  EXPECT_FALSE(tensors_of(folder.path() / "a2" / "epoch_0.pt") ==
               tensors_of(folder.path() / "c" / "epoch_0.pt"));
}

TEST(SsdTrain, T1_14_resumed_after_an_epoch_equals_the_undisturbed_run_bit_for_bit) {
  const TemporaryFolder folder;
  const auto whole = folder.path() / "whole", parts = folder.path() / "parts";
  ASSERT_EQ(run_ranks(2, short_training(whole, 2)).exit_code, 0);
  ASSERT_EQ(run_ranks(2, short_training(parts, 1)).exit_code, 0);
  const auto resumed =
      run_ranks(2, short_training(parts, 2, {"--checkpoint", (parts / "epoch_0.pt").string()}));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(lines_with(resumed.err, "the checkpoint was made with").size(), 0U) << resumed.err;
  expect_equal(tensors_of(whole / "epoch_1.pt"), tensors_of(parts / "epoch_1.pt"));
}

TEST(SsdTrain, T3_15_evaluation_prints_the_same_for_every_number_of_ranks) {
  const TemporaryFolder folder;
  const auto models = folder.path() / "models";
  ASSERT_EQ(run_ranks(2, short_training(models, 1)).exit_code, 0);
  std::string first_text, first_results;
  for (const int ranks : {1, 2, 4, 8}) {
    const auto results = folder.path() / "results.json";
    const auto run =
        run_ranks(ranks, {"--data", packed_photos().string(), "--device", "cpu", "--backbone", "resnet18",
                          "--mode", "evaluation", "--eval-batch-size", "2", "--results", results.string(),
                          "--checkpoint", (models / "epoch_0.pt").string()});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(lines_with(run.out, "Average ").size(), 12U) << run.out;
    EXPECT_EQ(lines_with(run.out, "Current AP: ").size(), 1U);
    if (ranks == 1) {
      first_text = run.out;
      first_results = text_of(results);
      EXPECT_GT(nlohmann::json::parse(first_results).size(), 0U) << "no detection: nothing was compared";
    }
    EXPECT_EQ(run.out, first_text) << ranks;
    EXPECT_TRUE(text_of(results) == first_results) << ranks;
  }
}

TEST(SsdTrain, T1_10_writes_loss_and_ap_as_json_lines_and_trains_on_after_an_evaluation) {
  const TemporaryFolder folder;
  auto arguments =
      short_training(folder.path() / "models", 2,
                     {"--json-summary", (folder.path() / "log").string(), "--log-interval", "1"});
  for (auto& word : arguments) {
    if (word == "none") word = "0";
  }
  const auto run = run_ranks(2, arguments);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  int losses = 0, averages = 0, parameters = 0;
  std::istringstream stream(text_of(folder.path() / "log"));
  for (std::string line; std::getline(stream, line);) {
    ASSERT_EQ(line.substr(0, 5), "DLLL ");
    const auto json = nlohmann::json::parse(line.substr(5));
    const auto data = json.value("data", nlohmann::json::object());  // lines of metadata have none
    losses += data.contains("loss") ? 1 : 0;
    averages += data.contains("mAP") ? 1 : 0;
    parameters += json.value("step", nlohmann::json()) == "PARAMETER" ? 1 : 0;
  }
  EXPECT_EQ(losses, 4);  // 7 images with boxes at most, global batch 4: two iterations an epoch
  EXPECT_EQ(averages, 1);
  EXPECT_EQ(parameters, 1);
  // T1-10: statistics still move in the epoch after the evaluation, and every batch was counted.
  const auto before = read_checkpoint_file(folder.path() / "models" / "epoch_0.pt").at("model");
  const auto after = read_checkpoint_file(folder.path() / "models" / "epoch_1.pt").at("model");
  const char* name = "feature_extractor.feature_extractor.1.running_mean";
  EXPECT_TRUE(contiguous_bytes(before.at(name).tensor()) != contiguous_bytes(after.at(name).tensor()));
  const auto counter =
      contiguous_bytes(after.at("feature_extractor.feature_extractor.1.num_batches_tracked").tensor());
  EXPECT_EQ(*reinterpret_cast<const std::int64_t*>(counter.data()), 4);
}

TEST(SsdTrain, each_evaluation_is_marked_with_its_epoch_and_none_is_lost) {
  const TemporaryFolder folder;
  for (const bool waits : {false, true}) {
    auto arguments = short_training(folder.path() / "models", 3);
    const auto none = std::find(arguments.begin(), arguments.end(), "none");
    *none = "0";
    arguments.insert(none + 1, {"1", "2"});
    if (waits) arguments.push_back("--wait-for-scores");
    const auto run = run_ranks(2, arguments);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    std::vector<std::string> wanted;
    for (int epoch = 0; epoch < 3; ++epoch) wanted.push_back(fmt::format("Evaluation of epoch {}:", epoch));
    EXPECT_EQ(lines_with(run.out, "Evaluation of epoch"), wanted) << run.out;
    EXPECT_EQ(lines_with(run.out, "Average ").size(), 36U) << run.out;
  }
}

TEST(SsdTrain, T1_13_warns_where_no_evaluation_comes) {
  const TemporaryFolder folder;
  auto arguments = short_training(folder.path(), 1);
  for (auto& word : arguments) {
    if (word == "none") word = "5";
  }
  const auto run = run_ranks(2, arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(lines_with(run.err, "none of these epochs comes in a run of epochs 0 to 0").size(), 1U)
      << run.err;
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "epoch_0.pt"));
}

TEST(SsdTrain, T1_07_a_run_away_loss_stops_the_run_and_no_file_holds_what_is_not_finite) {
  const TemporaryFolder folder;
  const auto run = run_ranks(2, {"--data",         packed_photos().string(),
                                 "--device",       "cpu",
                                 "--backbone",     "resnet18",
                                 "--batch-size",   "2",
                                 "--epochs",       "20",
                                 "--seed",         "3",
                                 "--evaluation",   "none",
                                 "--lr",           "1e12",
                                 "--log-interval", "1",
                                 "--save",         folder.path().string()});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  const auto errors = lines_with(run.err, "error:");
  ASSERT_EQ(errors.size(), 1U) << run.err;
  EXPECT_THAT(errors[0], testing::HasSubstr("learning rate"));
  for (const auto& file : list_checkpoint_files(folder.path())) {
    for (const auto& [name, bytes] : tensors_of(file.path)) {
      if (name.ends_with("num_batches_tracked")) continue;
      const auto* values = reinterpret_cast<const float*>(bytes.data());
      for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i)
        ASSERT_TRUE(std::isfinite(values[i])) << file.path << " " << name;
    }
  }
}

struct BadStart {
  const char* name;
  std::vector<std::string> arguments;
  int exit_code;
  std::string error;  // the end of the one error line
};

class BadStartTest : public testing::TestWithParam<std::tuple<BadStart, int>> {};

TEST_P(BadStartTest, is_one_line_in_all_with_its_exit_code) {
  const auto& [bad, ranks] = GetParam();
  const auto run = run_ranks(ranks, bad.arguments);
  EXPECT_EQ(run.exit_code, bad.exit_code) << run.err;
  const auto errors = lines_with(run.err, "error:");
  ASSERT_EQ(errors.size(), 1U) << run.err;
  EXPECT_THAT(errors[0], testing::EndsWith(bad.error));
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadStartTest,
    testing::Combine(
        testing::Values(
            BadStart{
                "no_folder",
                {"--data", "/nowhere", "--device", "cpu"},
                1,
                "no folder '/nowhere'; give the folder that ssd_preprocess wrote, with --data or SSD_DATA"},
            BadStart{
                "wrong_flag", {"--batch", "3"}, 2, "unrecognised option '--batch'; see ssd_train --help"},
            BadStart{"no_checkpoint",
                     {"--data", SSD_TEST_DATA "/coco_free", "--mode", "evaluation"},
                     2,
                     "--mode evaluation: give the file to evaluate as --checkpoint FILE"}),
        testing::Values(1, 4)),
    [](const auto& item) {
      return fmt::format("{}_np{}", std::get<0>(item.param).name, std::get<1>(item.param));
    });

TEST(SsdTrain, a_coco_folder_instead_of_shards_is_answered_with_the_command_to_run) {
  const auto run = run_ranks(2, {"--data", SSD_TEST_DATA "/coco_free", "--device", "cpu"});
  EXPECT_EQ(run.exit_code, 1);
  const auto errors = lines_with(run.err, "error:");
  ASSERT_EQ(errors.size(), 1U) << run.err;
  EXPECT_THAT(errors[0], testing::HasSubstr("ssd_preprocess " SSD_TEST_DATA "/coco_free"));
}

// Two ranks whose shards differ: a folder for each, as local disks of two nodes.
TEST(SsdTrain, ranks_that_see_other_shards_are_refused_with_one_line) {
  const TemporaryFolder folder;
  for (const int rank : {0, 1}) {
    const auto packed = run_program(
        {SSD_BIN_DIR "/ssd_preprocess", "--split", "train", "--annotations",
         fmt::format("{}/coco_free/annotations/instances_{}2017.json", SSD_TEST_DATA,
                     rank == 0 ? "train" : "val"),
         "--images", fmt::format("{}/coco_free/{}2017", SSD_TEST_DATA, rank == 0 ? "train" : "val"),
         (folder.path() / std::to_string(rank)).string()});
    ASSERT_EQ(packed.exit_code, 0) << packed.err;
  }
  const auto command = fmt::format(
      "exec {} --data {}/$OMPI_COMM_WORLD_RANK --device cpu --backbone resnet18 --batch-size 2 "
      "--evaluation none",
      test::kProgram, folder.path().string());
  const auto run = run_program({SSD_MPIEXEC, "-np", "2", "sh", "-c", command});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  const auto errors = lines_with(run.err, "error:");
  ASSERT_EQ(errors.size(), 1U) << run.err;
  EXPECT_THAT(errors[0], testing::HasSubstr("rank 1 and rank 0 see other train shards"));
  EXPECT_THAT(errors[0], testing::HasSubstr("has digest"));
}

TEST(SsdTrain, tasks_of_an_srun_that_brings_no_mpi_up_are_refused) {
  const auto run = run_program(
      {"/usr/bin/env", "SLURM_STEP_NUM_TASKS=4", test::kProgram, "--data", packed_photos().string()});
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_THAT(run.err,
              testing::HasSubstr("error: SLURM_STEP_NUM_TASKS=4 says that this process was started as one of "
                                 "several, but MPI sees one rank; "));
}

TEST(SsdTrain, weights_of_all_ranks_are_compared_on_the_way) {
  const TemporaryFolder folder;
  const auto run =
      run_ranks(2, short_training(folder.path(), 1, {"--check-weights", "1", "--gradient-type", "bf16"}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, testing::HasSubstr("gradients in BF16"));
}

TEST(SsdTrain, a_benchmark_tells_rates_waits_and_phases) {
  const auto run = run_ranks(2, {"--data", packed_photos().string(), "--device", "cpu", "--backbone",
                                 "resnet18", "--batch-size", "2", "--mode", "benchmark-training",
                                 "--benchmark-warmup", "1", "--benchmark-iterations", "2", "--warmup", "10"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(lines_with(run.out, "training: ").size(), 1U) << run.out;
  EXPECT_EQ(lines_with(run.out, " on 2 ranks, ").size(), 1U) << run.out;
  for (const char* phase : {"data", "forward", "backward", "exposed_comm", "optimizer"}) {
    EXPECT_GE(lines_with(run.out, phase).size(), 1U) << run.out;
  }
}

TEST(SsdTrain, T5_11_a_broken_checkpoint_is_named_once_and_ends_all_ranks) {
  const TemporaryFolder folder;
  write_text(folder.path() / "epoch_1.pt", "PK half a file");
  const auto run =
      run_ranks(4, {"--data", packed_photos().string(), "--device", "cpu", "--backbone", "resnet18",
                    "--batch-size", "2", "--checkpoint", (folder.path() / "epoch_1.pt").string()});
  EXPECT_EQ(run.exit_code, 1);
  const auto errors = lines_with(run.err, "error:");
  ASSERT_EQ(errors.size(), 1U) << run.err;
  EXPECT_THAT(errors[0], testing::HasSubstr("epoch_1.pt"));
}

}  // namespace
}  // namespace ssd
