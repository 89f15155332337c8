// Ranks that stop, die, hang or throw in any phase of a run: the job ends in time, and its one line names the
// rank. A job that is suspended: tests/comm/watchdog_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/stopwatch.hpp"
#include "programs/trained_set.hpp"
#include "support/running_program.hpp"

namespace ssd {
namespace {

using test::lines_with;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr double kDeadlineSeconds = 12;  // a step takes seconds where other tests run beside
// What the launcher takes to end the ranks (TERM, a second, KILL) on a busy machine, and the rounds of
// messages.
constexpr double kEndSeconds = 17;

struct Fault {
  std::string call, action;
  int rank = 1;
  std::string path = "";  // of files that are meant
};

// Every iteration saves, every epoch is evaluated, and there is no end in sight.
std::vector<std::string> long_run(int ranks, const std::filesystem::path& save, const Fault& fault,
                                  const std::filesystem::path& trigger, int epochs = 10000) {
  std::vector<std::string> command{SSD_MPIEXEC, "-np", std::to_string(ranks)};
  if (!fault.call.empty()) {
    for (const auto& [name, value] :
         std::vector<std::pair<std::string, std::string>>{{"LD_PRELOAD", SSD_FAULT_LIBRARY},
                                                          {"SSD_FAULT_CALL", fault.call},
                                                          {"SSD_FAULT_ACTION", fault.action},
                                                          {"SSD_FAULT_RANK", std::to_string(fault.rank)},
                                                          {"SSD_FAULT_PATH", fault.path},
                                                          {"SSD_FAULT_TRIGGER", trigger.string()}}) {
      command.insert(command.end(), {"-x", name + "=" + value});
    }
  }
  command.push_back(test::kProgram);
  const auto arguments = test::short_training(
      save, epochs,
      {"--log-interval", "1", "--watchdog-seconds", fmt::format("{}", kDeadlineSeconds), "--keep", "2"});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

struct Ended {
  ProgramResult result;
  double seconds;  // from the fault on
};

// The run of so many ranks; when it trains, the fault is let loose.
Ended end_of(int ranks, const Fault& fault, std::vector<std::string> more = {}, int epochs = 10000) {
  const TemporaryFolder folder;
  auto command = long_run(ranks, folder.path() / "save", fault, folder.path() / "now", epochs);
  command.insert(command.end(), more.begin(), more.end());
  RunningProgram run(command);
  EXPECT_TRUE(run.wait_for("epoch 0 iter")) << run.wait().err;
  write_text(folder.path() / "now", "");
  const Stopwatch time;
  auto result = run.wait();
  return {std::move(result), time.seconds()};
}

void expect_one_error(const Ended& ended, const std::string& pattern) {
  EXPECT_EQ(ended.result.exit_code, 1) << ended.result.err;
  EXPECT_LT(ended.seconds, kDeadlineSeconds + kEndSeconds) << ended.result.err;
  const auto errors = lines_with(ended.result.err, "error:");
  ASSERT_EQ(errors.size(), 1U) << ended.result.err;
  EXPECT_THAT(errors[0], ContainsRegex(pattern));
}

class Ranks : public testing::TestWithParam<int> {};

TEST_P(Ranks, T5_02_one_that_is_stopped_is_named_whoever_it_is) {
  for (const int stopped : {0, GetParam() - 1}) {
    const TemporaryFolder folder;
    RunningProgram run(long_run(GetParam(), folder.path() / "save", {}, {}));
    ASSERT_TRUE(run.wait_for("epoch 0 iter"));
    const auto process = run.rank_process(stopped);
    ASSERT_NE(process, 0);
    ::kill(process, SIGSTOP);
    const Stopwatch time;
    auto result = run.wait();
    expect_one_error({std::move(result), time.seconds()},
                     fmt::format("rank {} on .* has given no sign of life for 1[2-9] s", stopped));
  }
}

TEST_P(Ranks, T5_01_one_that_is_killed_ends_the_job_at_once) {
  const TemporaryFolder folder;
  RunningProgram run(long_run(GetParam(), folder.path() / "save", {}, {}));
  ASSERT_TRUE(run.wait_for("epoch 0 iter"));
  ::kill(run.rank_process(GetParam() - 1), SIGKILL);
  const Stopwatch time;
  const auto result = run.wait();
  EXPECT_LT(time.seconds(), kEndSeconds);
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_THAT(result.err, HasSubstr(fmt::format("process rank {}", GetParam() - 1)));  // the launcher's words
}

TEST_P(Ranks, one_that_dies_inside_malloc_ends_the_job_at_once) {
  const auto last = GetParam() - 1;
  const auto ended = end_of(GetParam(), {"pread", "free_twice", last, ".h5"});
  EXPECT_LT(ended.seconds, kDeadlineSeconds + kEndSeconds);
  EXPECT_EQ(ended.result.exit_code, 128 + SIGABRT) << ended.result.err;
  EXPECT_THAT(ended.result.err, HasSubstr("double free"));
}

TEST_P(Ranks, one_that_is_killed_in_an_evaluation_ends_the_job_at_once) {
  const auto last = GetParam() - 1;
  const auto ended =
      end_of(GetParam(), {"MPI_Gather", "kill", last}, {"--evaluation", "0", "1", "2", "3", "4"});
  EXPECT_LT(ended.seconds, kDeadlineSeconds + kEndSeconds);
  EXPECT_EQ(ended.result.exit_code, 128 + SIGKILL) << ended.result.err;
  EXPECT_THAT(ended.result.err, HasSubstr(fmt::format("process rank {}", last)));
}

TEST_P(Ranks, one_whose_read_never_ends_is_named) {
  expect_one_error(
      end_of(GetParam(), {"pread", "hang", GetParam() - 1, ".h5"}),
      fmt::format("rank {} on .* has been waiting for the next batch for 1[2-9] s", GetParam() - 1));
}

TEST_P(Ranks, a_save_that_never_ends_is_named) {
  expect_one_error(end_of(GetParam(), {"fsync", "hang", 0, "save"}),
                   "rank 0 on .* has been waiting for the checkpoint before to be written for 1[2-9] s");
}

TEST_P(Ranks, one_that_throws_ends_the_job_whatever_it_does) {
  const auto last = GetParam() - 1;
  expect_one_error(end_of(GetParam(), {"pread", "fail", last, ".h5"}),
                   fmt::format("rank {}.*cannot read.*Input/output error", last));
  expect_one_error(end_of(GetParam(), {"big_allocation", "fail", last}),
                   fmt::format("rank {}.*memory", last));
  expect_one_error(end_of(GetParam(), {"MPI_Ibarrier", "fail", last}),
                   fmt::format("rank {}.*MPI: MPI_Ibarrier", last));
  expect_one_error(
      end_of(GetParam(), {"MPI_Gather", "fail", last}, {"--evaluation", "0", "1", "2", "3", "4"}),
      fmt::format("rank {}.*MPI: MPI_Gather", last));
}

TEST_P(Ranks, one_that_cannot_open_its_shards_ends_the_job) {
  const TemporaryFolder folder;
  const auto last = GetParam() - 1;
  RunningProgram run(long_run(GetParam(), folder.path() / "save", {"pread", "fail", last, ".h5"}, {}));
  const Stopwatch time;
  auto result = run.wait();
  expect_one_error({std::move(result), time.seconds()}, fmt::format("rank {}.*\\.h5", last));
}

// The ranks that have ended wait a minute for the others.
TEST_P(Ranks, one_that_does_not_end_is_not_waited_for) {
  if (std::getenv("SSD_TEST_LONG") == nullptr)
    GTEST_SKIP() << "takes more than a minute; SSD_TEST_LONG=1 runs it";
  const TemporaryFolder folder;
  const auto result = run_program(
      long_run(GetParam(), folder.path() / "save", {"MPI_Finalize", "hang", GetParam() - 1}, {}, 1));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const auto errors = lines_with(result.err, "error:");
  ASSERT_EQ(errors.size(), 1U) << result.err;
  EXPECT_THAT(errors[0], HasSubstr("a rank has not come to its end"));
}

INSTANTIATE_TEST_SUITE_P(Of, Ranks,
                         testing::ValuesIn(std::getenv("SSD_TEST_LONG") != nullptr ? std::vector{2, 4}
                                                                                   : std::vector{2}));

TEST(Watchdog, sees_a_run_alone_too) {
  expect_one_error(end_of(1, {"pread", "hang", 0, ".h5"}), "waiting for the next batch for 1[2-9] s");
}

TEST(Watchdog, a_runaway_loss_ends_the_run_with_the_last_good_checkpoint_named) {
  const auto arguments = std::vector<std::string>{"--learning-rate", "1e6", "--no-fp16", "--warmup", "0"};
  const TemporaryFolder folder;
  auto command = long_run(1, folder.path(), {}, {}, 200);
  command.insert(command.end(), arguments.begin(), arguments.end());
  const auto run = run_program(command);
  EXPECT_EQ(run.exit_code, 1) << run.err;
  const auto errors = lines_with(run.err, "error:");
  ASSERT_EQ(errors.size(), 1U) << run.err;
  EXPECT_THAT(errors[0], ContainsRegex("the loss is .*(last good checkpoint is '|written)"));
}

}  // namespace
}  // namespace ssd
