// Faults that end a whole job: every rank is gone in time, with one line and exit code 1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <sstream>

#include "comm/nccl_double.hpp"
#include "support/run_program.hpp"

namespace ssd {
namespace {

using test::NcclFault;

constexpr int kLastRank = -1;
constexpr const char* kLate =
    "it did not end within 1 s; NCCL_DEBUG=INFO tells more, NCCL_SOCKET_IFNAME chooses the network interface";

struct FaultyJob {
  std::string name;
  std::vector<int> ranks;
  std::string implementation;
  std::string fault;
  int rank;              // where the fault lies
  int timeout_seconds;   // of NCCL's start and of a step
  double limit_seconds;  // in which the job has to be gone
  int speaker;           // the rank that prints
  std::string line;      // after "error: "
  std::string more{};
};

std::string number_of(NcclFault fault) {
  return std::to_string(static_cast<int>(fault));
}

void PrintTo(const FaultyJob& job, std::ostream* out) {
  *out << job.name;
}

ProgramResult run(const FaultyJob& job, int ranks) {
  const int rank = job.rank == kLastRank ? ranks - 1 : job.rank;
  std::vector<std::string> command{
      SSD_MPIEXEC,        "-np",     std::to_string(ranks), SSD_FAULT_PROGRAM,
      job.implementation, job.fault, std::to_string(rank),  std::to_string(job.timeout_seconds)};
  if (!job.more.empty()) command.push_back(job.more);
  return run_program(command);
}

std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(part) != std::string::npos) found.push_back(line);
  }
  return found;
}

class FaultyJobTest : public testing::TestWithParam<FaultyJob> {};

TEST_P(FaultyJobTest, ends_in_time_with_one_line_of_one_rank) {
  const auto& job = GetParam();
  for (const int ranks : job.ranks) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const auto begin = std::chrono::steady_clock::now();
    const auto result = run(job, ranks);
    const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_LT(seconds, job.limit_seconds);
    const auto errors = lines_with(result.err, "error: ");
    ASSERT_EQ(errors.size(), 1U) << result.err;
    EXPECT_THAT(errors[0], testing::EndsWith("error: " + job.line));
    const int speaker = job.speaker == kLastRank ? ranks - 1 : job.speaker;
    if (ranks > 1) {
      EXPECT_THAT(errors[0], testing::StartsWith("[rank " + std::to_string(speaker) + " on "));
    }
  }
}

// Errors have to be told at once, long before the time-out of 60 s: within the patience of the rank (9 s at
// most) and what a busy machine takes to start and to end a job.
constexpr double kAtOnce = 40, kAfterTimeout = 40;

INSTANTIATE_TEST_SUITE_P(
    Of, FaultyJobTest,
    testing::Values(FaultyJob{"no_unique_id",
                              {2, 4},
                              "nccl",
                              number_of(NcclFault::no_unique_id),
                              0,
                              60,
                              kAtOnce,
                              0,
                              "NCCL: ncclGetUniqueId failed: unhandled system error"},
                    FaultyJob{"T5_06_start_error",
                              {2, 4},
                              "nccl",
                              number_of(NcclFault::start_error),
                              kLastRank,
                              60,
                              kAtOnce,
                              kLastRank,
                              "NCCL: ncclCommInitRankConfig failed: unhandled system error"},
                    FaultyJob{"T5_06_start_never_ends",
                              {2, 4},
                              "nccl",
                              number_of(NcclFault::start_never_ends),
                              kLastRank,
                              1,
                              kAfterTimeout,
                              0,
                              std::string("NCCL: ncclCommInitRankConfig failed: ") + kLate},
                    FaultyJob{"average_error",
                              {2, 4},
                              "nccl",
                              number_of(NcclFault::average_error),
                              kLastRank,
                              60,
                              kAtOnce,
                              kLastRank,
                              "NCCL: ncclAllReduce failed: invalid usage"},
                    FaultyJob{"average_call_hangs",
                              {1, 2, 4},
                              "nccl",
                              number_of(NcclFault::average_call_hangs),
                              kLastRank,
                              1,
                              kAfterTimeout,
                              0,
                              std::string("NCCL: an allreduce failed: ") + kLate},
                    FaultyJob{"average_never_ends",
                              {1, 2, 4},
                              "nccl",
                              number_of(NcclFault::average_never_ends),
                              kLastRank,
                              1,
                              kAfterTimeout,
                              0,
                              std::string("NCCL: an allreduce failed: ") + kLate},
                    FaultyJob{"average_never_ends_and_nobody_waits_for_it",
                              {2},
                              "nccl",
                              number_of(NcclFault::average_never_ends),
                              kLastRank,
                              1,
                              kAfterTimeout,
                              0,
                              std::string("NCCL: an allreduce failed: ") + kLate,
                              "never_finishes"},
                    FaultyJob{"error_during_average",
                              {1, 2, 4},
                              "nccl",
                              number_of(NcclFault::error_during_average),
                              kLastRank,
                              60,
                              kAtOnce,
                              kLastRank,
                              "NCCL: an allreduce failed: unhandled system error"},
                    FaultyJob{"exception",
                              {1, 2, 4},
                              "nccl",
                              "exception",
                              kLastRank,
                              60,
                              kAtOnce,
                              kLastRank,
                              "an exception of the program"},
                    FaultyJob{"exception_and_an_abort_that_hangs",
                              {2},
                              "nccl",
                              "exception",
                              kLastRank,
                              60,
                              kAtOnce + 10,
                              kLastRank,
                              "an exception of the program",
                              "abort_hangs"},
                    FaultyJob{"average_never_ends_and_an_abort_that_hangs",
                              {2},
                              "nccl",
                              number_of(NcclFault::average_never_ends),
                              kLastRank,
                              1,
                              kAfterTimeout + 10,
                              0,
                              std::string("NCCL: an allreduce failed: ") + kLate,
                              "abort_hangs"},
                    FaultyJob{"mpi_exception",
                              {1, 2, 4},
                              "mpi",
                              "exception",
                              kLastRank,
                              60,
                              kAtOnce,
                              kLastRank,
                              "an exception of the program"}),
    [](const auto& each) { return each.param.name; });

TEST(FaultFreeJob, ends_well_with_either_communicator) {
  for (const char* implementation : {"nccl", "mpi"}) {
    FaultyJob job{"none", {}, implementation, number_of(NcclFault::none), 0, 60, 0, 0, ""};
    const auto result = run(job, 2);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "done\n");
    EXPECT_EQ(result.err, "");
  }
}

}  // namespace
}  // namespace ssd
