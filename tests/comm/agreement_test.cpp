#include "comm/agreement.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <new>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "support/world.hpp"

namespace ssd {
namespace {

struct Agreed {
  int exit_code = 0;    // 0: the phase went well
  std::string printed;  // by this rank
};

Agreed agree(const MpiComm& world, const std::function<void()>& phase) {
  Agreed agreed;
  testing::internal::CaptureStderr();
  try {
    run_in_agreement(world, phase);
  } catch (const AgreedFailure& failure) {
    agreed.exit_code = failure.exit_code;
  }
  agreed.printed = testing::internal::GetCapturedStderr();
  return agreed;
}

// Every way in which 1, 2 or 4 ranks may end a phase: well, with exit code 1 or with 2.
TEST(RunInAgreement, the_lowest_rank_that_fails_speaks_for_all) {
  const auto world = test::copy_of_world();
  const auto ranks = static_cast<std::size_t>(world.world_size()),
             own = static_cast<std::size_t>(world.rank());
  int ways = 1;
  for (std::size_t rank = 0; rank < ranks; ++rank) ways *= 3;
  for (int way = 0; way < ways; ++way) {
    std::vector<int> codes;
    for (int rest = way; codes.size() < ranks; rest /= 3) codes.push_back(rest % 3);
    std::size_t speaker = 0;
    while (speaker < ranks && codes[speaker] == 0) ++speaker;
    const auto agreed = agree(world, [&] {
      if (codes[own] == 1) throw Error("failed on " + std::to_string(own));
      if (codes[own] == 2) throw UsageError("wrong on " + std::to_string(own));
    });
    EXPECT_EQ(agreed.exit_code, speaker == ranks ? 0 : codes[speaker]) << way;
    EXPECT_EQ(agreed.printed, own != speaker    ? ""
                              : codes[own] == 1 ? "error: failed on " + std::to_string(own) + "\n"
                                                : "error: wrong on " + std::to_string(own) + "\n")
        << way;
  }
}

TEST(RunInAgreement, any_exception_becomes_one_line) {
  const auto world = test::copy_of_world();
  const auto expect_line = [&](const std::function<void()>& phase, const std::string& line) {
    const auto agreed = agree(world, phase);
    EXPECT_EQ(agreed.exit_code, 1);
    EXPECT_EQ(agreed.printed, world.is_root() ? line : "");
  };
  expect_line([] { throw std::bad_alloc(); }, "error: out of memory\n");
  expect_line([] { throw std::runtime_error("first\nsecond"); }, "error: first\n");
  expect_line([] { throw 5; }, "error: unknown exception\n");
}

}  // namespace
}  // namespace ssd
