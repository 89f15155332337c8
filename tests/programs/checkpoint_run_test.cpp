// Checkpoints of whole runs: saved beside training, stopped by signals, gone on from, on file systems that
// fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "programs/trained_set.hpp"

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
  const TemporaryFolder folder;
  const pid_t child = start_program(command, folder.path());
  int status = 0;
  pid_t ended = 0;
  while (ended == 0 && (!fs::exists(folder.path() / "err") ||
                        text_of(folder.path() / "err").find(text) == std::string::npos)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ended = ::waitpid(child, &status, WNOHANG);
  }
  for (const int signal : signals) {
    ::kill(child, signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (ended == 0) ::waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text_of(folder.path() / "out"),
          text_of(folder.path() / "err")};
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
