// Whom the watchdog blames, and when: ranks that hang, wait, end, or are stopped, alone or all together.
#include "comm/watchdog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/error.hpp"
#include "support/running_program.hpp"

namespace ssd {
namespace {

using testing::ContainsRegex;

void sleep_seconds(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

class Job {
 public:
  // The job in which `rank` of so many does this; 0 ranks: without mpirun.
  Job(int ranks, double deadline_s, const std::string& what, int rank = 0)
      : run_([&] {
          std::vector<std::string> command;
          if (ranks > 0) command = {SSD_MPIEXEC, "-np", std::to_string(ranks)};
          command.insert(command.end(), {SSD_WATCHDOG_PROGRAM, fmt::format("{}", deadline_s),
                                         (folder_.path() / "end").string(), what, std::to_string(rank)});
          return command;
        }()) {
    EXPECT_TRUE(run_.wait_for("ready"));
    if (ranks == 0) processes_ = {run_.process()};
    for (int i = 0; i < ranks; ++i) processes_.push_back(run_.rank_process(i));
  }

  void signal(int rank, int number) const {
    ASSERT_GT(processes_.at(static_cast<std::size_t>(rank)), 0);
    ::kill(processes_[static_cast<std::size_t>(rank)], number);
  }
  void expect_it_ends_well() {
    write_text(folder_.path() / "end", "");
    const auto result = run_.wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "done\n") << result.err;
  }
  // Of a job with a deadline of one second. pattern: of the one error line.
  void expect_it_is_ended(const std::string& pattern) {
    const auto result = run_.wait();
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.find("error: "), result.err.rfind("error: ")) << result.err;
    EXPECT_THAT(
        result.err,
        ContainsRegex("error: " + pattern +
                      "; the job ends here \\(--watchdog-seconds 1\\); go on with --checkpoint auto"));
  }

 private:
  TemporaryFolder folder_;
  RunningProgram run_;
  std::vector<pid_t> processes_;
};

TEST(Watchdog, names_the_rank_that_hangs) {
  Job(0, 1, "hang").expect_it_is_ended("rank 0 on .* has been reading a picture for [1-9] s");
  Job(2, 1, "hang", 0).expect_it_is_ended("rank 0 on .* has been reading a picture for [1-9] s");
  Job(2, 1, "hang", 1).expect_it_is_ended("rank 1 on .* has been reading a picture for [1-9] s");
}

TEST(Watchdog, tells_of_ranks_that_wait_for_each_other) {
  Job(2, 1, "wait")
      .expect_it_is_ended(
          "all ranks have been waiting for each other for [1-9] s: rank 0 on .* while training and all "
          "others "
          "likewise");
}

TEST(Watchdog, names_the_rank_that_is_stopped) {
  for (const int rank : {0, 1}) {
    Job job(2, 1, "work");
    job.signal(rank, SIGSTOP);
    job.expect_it_is_ended(fmt::format("rank {} on .* has given no sign of life for [1-9] s", rank) +
                           "; when last heard of it was starting");
  }
}

TEST(Watchdog, leaves_ranks_alone_that_work_for_longer_and_one_that_has_ended) {
  {
    Job job(2, 2, "work");
    sleep_seconds(3);
    job.expect_it_ends_well();
  }
  for (const int rank : {0, 1}) {
    Job job(2, 2, "leave", rank);
    sleep_seconds(3);
    job.expect_it_ends_well();
  }
}

// Longer than the deadline; what the process spends in the phase besides is a small part of it.
TEST(Watchdog, time_in_which_the_process_is_stopped_does_not_count_as_hanging) {
  Job job(0, 3, "hang");
  sleep_seconds(.5);  // the phase has begun
  job.signal(0, SIGSTOP);
  sleep_seconds(4);
  job.signal(0, SIGCONT);
  sleep_seconds(.5);
  job.expect_it_ends_well();
}

// Rank 0 goes on first and hears nothing of rank 1, as before it was stopped.
TEST(Watchdog, time_in_which_the_job_is_stopped_does_not_count_as_silence) {
  Job job(2, 3, "work");
  for (const int rank : {1, 0}) {
    job.signal(rank, SIGSTOP);
    sleep_seconds(.5);
  }
  sleep_seconds(3.5);
  for (const int rank : {0, 1}) {
    job.signal(rank, SIGCONT);
    sleep_seconds(.5);
  }
  job.expect_it_ends_well();
}

}  // namespace
}  // namespace ssd
