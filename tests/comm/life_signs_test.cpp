#include "comm/life_signs.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace ssd {
namespace {

constexpr double kDeadline = 10;

WatchedRank rank_with(int rank, const char* phase, double seconds, bool waits = false, double silent = 0) {
  return {rank, "n" + std::to_string(rank), make_life_sign(phase, seconds, waits), silent};
}

WatchedRank ended(int rank) {
  auto one = rank_with(rank, "ending", 0);
  one.sign.is_last = true;
  return one;
}

std::string stuck(std::vector<WatchedRank> ranks) {
  return find_stuck_rank(ranks, kDeadline).value_or("");
}

TEST(FindStuckRank, nobody_while_all_move) {
  EXPECT_EQ(stuck({rank_with(0, "computing a step", 9.9), rank_with(1, "computing a step", 10, true)}), "");
  EXPECT_EQ(stuck({}), "");
}

TEST(FindStuckRank, one_that_waits_is_not_to_blame_while_another_works) {
  EXPECT_EQ(stuck({rank_with(0, "computing a step", 500, true), rank_with(1, "evaluating", 3)}), "");
  EXPECT_EQ(stuck({rank_with(0, "computing a step", 500, true), rank_with(1, "evaluating", 11)}),
            "rank 1 on n1 has been evaluating for 11 s");
}

TEST(FindStuckRank, the_longest_at_work_is_named) {
  EXPECT_EQ(stuck({rank_with(0, "saving", 11), rank_with(1, "waiting for the next batch", 12)}),
            "rank 1 on n1 has been waiting for the next batch for 12 s");
}

TEST(FindStuckRank, a_silent_one_comes_first) {
  EXPECT_EQ(stuck({rank_with(0, "saving", 99), rank_with(1, "computing a step", 0, true, 11)}),
            "rank 1 on n1 has given no sign of life for 11 s; when last heard of it was computing a step");
}

TEST(FindStuckRank, nobody_is_to_blame_at_the_deadline_itself) {
  const double later = kDeadline + 1e-9;
  EXPECT_EQ(stuck({rank_with(0, "saving", kDeadline)}), "");
  EXPECT_EQ(stuck({rank_with(0, "saving", later)}), "rank 0 on n0 has been saving for 10 s");
  EXPECT_EQ(stuck({rank_with(0, "saving", kDeadline, true)}), "");
  EXPECT_EQ(stuck({rank_with(0, "saving", later, true)}),
            "all ranks have been waiting for each other for 10 s: rank 0 on n0 while saving and all others "
            "likewise");
  EXPECT_EQ(stuck({rank_with(0, "saving", 0, false, kDeadline)}), "");
  EXPECT_EQ(stuck({rank_with(0, "saving", 0, false, later)}),
            "rank 0 on n0 has given no sign of life for 10 s; when last heard of it was saving");
}

TEST(FindStuckRank, of_several_alike_the_first_is_named) {
  EXPECT_EQ(stuck({rank_with(0, "saving", 1), rank_with(1, "saving", 11), rank_with(2, "reading", 11)}),
            "rank 1 on n1 has been saving for 11 s");
  EXPECT_EQ(stuck({rank_with(0, "saving", 1), rank_with(1, "saving", 0, false, 11),
                   rank_with(2, "reading", 0, false, 500)}),
            "rank 1 on n1 has given no sign of life for 11 s; when last heard of it was saving");
}

TEST(FindSilentRank, looks_at_silence_alone) {
  const std::vector ranks{rank_with(0, "saving", 500), rank_with(1, "training", 500, true)};
  EXPECT_EQ(find_silent_rank(ranks, kDeadline), std::nullopt);
  const std::vector silent{rank_with(0, "saving", 0, true, 11)};
  EXPECT_EQ(find_silent_rank(silent, kDeadline),
            "rank 0 on n0 has given no sign of life for 11 s; when last heard of it was saving");
}

TEST(FindStuckRank, all_that_wait_for_each_other_are_told_apart) {
  EXPECT_EQ(
      stuck({rank_with(0, "evaluating", 11, true), rank_with(1, "evaluating", 12, true)}),
      "all ranks have been waiting for each other for 11 s: rank 0 on n0 while evaluating and all others "
      "likewise");
  EXPECT_EQ(stuck({rank_with(0, "evaluating", 11, true), rank_with(1, "training", 12, true)}),
            "all ranks have been waiting for each other for 11 s: rank 0 on n0 while evaluating, rank 1 on "
            "n1 while "
            "training");
  EXPECT_EQ(stuck({rank_with(0, "evaluating", 11, true), rank_with(1, "training", 9, true)}), "");
}

TEST(FindStuckRank, one_that_has_ended_may_be_silent_but_leaves_others_waiting) {
  auto silent = ended(1);
  silent.silent_seconds = 1000;
  EXPECT_EQ(stuck({rank_with(0, "training", 5), silent}), "");
  EXPECT_EQ(
      stuck({rank_with(0, "training", 11, true), silent}),
      "all ranks have been waiting for each other for 11 s: rank 0 on n0 while training, rank 1 on n1 has "
      "ended");
  EXPECT_EQ(stuck({ended(0), silent}), "");
  EXPECT_EQ(find_silent_rank(std::vector{silent}, kDeadline), std::nullopt);
}

// Its last sign may tell of a phase that had been going on for long.
TEST(FindStuckRank, one_that_has_ended_is_never_stuck_itself) {
  for (const bool waits : {false, true}) {
    auto last = rank_with(1, "saving", 500, waits);
    last.sign.is_last = true;
    EXPECT_EQ(stuck({rank_with(0, "training", 5), last}), "");
    EXPECT_EQ(stuck({rank_with(0, "training", 5, true), last}), "");
    EXPECT_EQ(stuck({rank_with(0, "training", 11), last}), "rank 0 on n0 has been training for 11 s");
    EXPECT_EQ(stuck({last}), "");
    EXPECT_EQ(
        stuck({last, rank_with(2, "training", 12, true)}),
        "all ranks have been waiting for each other for 12 s: rank 2 on n2 while training, rank 1 on n1 "
        "has ended");
  }
}

TEST(LifeSign, a_long_phase_is_cut) {
  const std::string long_phase(200, 'x');
  EXPECT_EQ(std::string(make_life_sign(long_phase.c_str(), 0, false).phase.data()), std::string(63, 'x'));
}

}  // namespace
}  // namespace ssd
