// Checkpoints of whole runs: saved beside training, stopped by signals, gone on from, on file systems that
// fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "programs/trained_set.hpp"
#include "support/running_program.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using test::expect_equal;
using test::lines_with;
using test::run_ranks;
using test::short_training;
using test::tensors_of;
using testing::HasSubstr;

std::vector<std::string> mpirun(int ranks, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{SSD_MPIEXEC, "-np", std::to_string(ranks), test::kProgram};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

// Starts a program, and when it has printed the text sends it these signals.
ProgramResult run_with_signals(const std::vector<std::string>& command, const std::string& text,
                               const std::vector<int>& signals) {
  RunningProgram run(command);
  run.wait_for(text);
  for (const int signal : signals) {
    ::kill(run.process(), signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return run.wait();
}

TEST(CheckpointRun, T5_09_stopped_by_a_signal_in_mid_epoch_it_goes_on_to_the_same_bits) {
  const TemporaryFolder folder;
  const auto whole = folder.path() / "whole", parts = folder.path() / "parts";
  ASSERT_EQ(run_ranks(2, short_training(whole, 3)).exit_code, 0);
  // Two iterations an epoch: the first step's line is seen long before the last.
  const auto stopped =
      run_with_signals(mpirun(2, short_training(parts, 3, {"--log-interval", "1"})), "iter 1/6", {SIGUSR1});
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_EQ(lines_with(stopped.err, "stopped after iteration").size(), 1U) << stopped.err;
  EXPECT_EQ(lines_with(stopped.err, "error:").size(), 0U) << stopped.err;
  EXPECT_FALSE(fs::exists(parts / "epoch_2.pt"));
  const auto resumed = run_ranks(2, short_training(parts, 3, {"--checkpoint", "auto"}));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  expect_equal(tensors_of(whole / "epoch_2.pt"), tensors_of(parts / "epoch_2.pt"));
}

TEST(CheckpointRun, T5_10_a_second_signal_ends_at_once_and_leaves_whole_files) {
  const TemporaryFolder folder;
  auto command = short_training(folder.path(), 50, {"--log-interval", "1", "--save-every-iterations", "1"});
  command.insert(command.begin(), test::kProgram);
  const auto run = run_with_signals(command, "iter 5/", {SIGTERM, SIGTERM});
  EXPECT_EQ(run.exit_code, 128 + SIGTERM) << run.err;
  const auto resumed = run_ranks(1, short_training(folder.path(), 2, {"--checkpoint", "auto"}));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(lines_with(resumed.err, "checkpoint '").size(), 1U) << resumed.err;
}

// The iteration of the last line of that kind: "... 'F': epoch E, iteration N" or "saved
// '.../iteration_N.pt'".
long last_iteration(const std::string& text, const std::string& part, const std::string& before_number) {
  const auto lines = lines_with(text, part);
  if (lines.empty()) return 0;
  const auto& line = lines.back();
  return std::stol(line.substr(line.rfind(before_number) + before_number.size()));
}

// Each run goes on from what the one before it left; SSD_TEST_LONG=1 kills a hundred.
TEST(CheckpointRun, killed_at_any_moment_it_goes_on_from_a_save_no_older_than_the_last) {
  const TemporaryFolder folder;
  std::mt19937 random(1);
  const auto command = mpirun(
      2, short_training(folder.path(), 100000, {"--checkpoint", "auto", "--save-every-iterations", "1"}));
  long completed = 0;
  for (int kill = 0, kills = std::getenv("SSD_TEST_LONG") != nullptr ? 100 : 3; kill < kills; ++kill) {
    RunningProgram run(command);
    ASSERT_TRUE(run.wait_for("saved '"));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 3000));
    // Rank 0, or the launcher and with it all.
    const auto rank_0 = run.rank_process(0);
    ASSERT_NE(rank_0, 0);
    ::kill(kill % 2 == 0 ? rank_0 : run.process(), SIGKILL);
    const auto result = run.wait();
    while (::kill(rank_0, 0) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const auto from = last_iteration(result.err, "checkpoint '", "iteration ");
    ASSERT_GE(from, completed) << "kill " << kill << ": " << result.err;
    completed = std::max(from, last_iteration(result.err, "/iteration_", "/iteration_"));
  }
  EXPECT_GT(completed, 0);
}

TEST(CheckpointRun, saves_between_epochs_and_keeps_what_it_is_told) {
  const TemporaryFolder folder;
  const auto run =
      run_ranks(2, short_training(folder.path(), 3, {"--save-every-iterations", "1", "--keep", "2"}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(lines_with(run.err, "/iteration_1.pt' in ").size(), 1U) << run.err;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) names.push_back(entry.path().filename());
  EXPECT_THAT(names, testing::UnorderedElementsAre("epoch_1.pt", "epoch_2.pt", "latest"));
  EXPECT_EQ(text_of(folder.path() / "latest"), "epoch_2.pt\n");
}

TEST(CheckpointRun, auto_passes_over_a_file_that_is_not_whole) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_ranks(1, short_training(folder.path(), 2)).exit_code, 0);
  fs::resize_file(folder.path() / "epoch_1.pt", fs::file_size(folder.path() / "epoch_1.pt") / 2);
  const auto resumed = run_ranks(1, short_training(folder.path(), 2, {"--checkpoint", "auto"}));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(lines_with(resumed.err, "epoch_1.pt").size(), 2U)
      << resumed.err;  // passed over, and written again
  EXPECT_EQ(lines_with(resumed.err, "looking for an older one").size(), 1U) << resumed.err;
  EXPECT_EQ(lines_with(resumed.err, "epoch_0.pt': epoch 1, iteration").size(), 1U) << resumed.err;
}

// Files of more than a megabyte cannot be written: as on a full disk.
TEST(CheckpointRun, T5_12_a_full_disk_is_warned_of_while_training_goes_on_and_the_end_is_a_failure) {
  const TemporaryFolder folder;
  std::string words;
  for (const auto& word : short_training(folder.path(), 2)) words += " '" + word + "'";
  const auto run =
      run_program({"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 2048; exec " + test::kProgram + words});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_GE(lines_with(run.err, "epoch_0.pt' is not written: ").size(), 1U) << run.err;
  EXPECT_GE(lines_with(run.err, "epoch 1 iter").size(), 1U) << run.err;
  const auto errors = lines_with(run.err, "error:");
  ASSERT_EQ(errors.size(), 1U) << run.err;
  EXPECT_THAT(errors[0], HasSubstr("the last checkpoint is not written"));
  EXPECT_FALSE(fs::exists(folder.path() / "epoch_0.pt"));
}

TEST(CheckpointRun, auto_without_a_checkpoint_starts_anew_and_needs_the_folder) {
  const TemporaryFolder folder;
  const auto run = run_ranks(1, short_training(folder.path() / "new", 1, {"--checkpoint", "auto"}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(lines_with(run.err, "yet, from the start").size(), 1U) << run.err;
  const auto wrong =
      run_program({test::kProgram, "--data", test::packed_photos().string(), "--checkpoint", "auto"});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.err;
  EXPECT_THAT(wrong.err, HasSubstr("need the folder: --save DIR"));
}

}  // namespace
}  // namespace ssd
