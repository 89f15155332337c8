#include "report/progress.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/log.hpp"

namespace ssd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A clock that is set by hand, and what was written.
struct Stage {
  double now = 100;
  std::vector<std::string> written;

  ProgressOptions options(ProgressOutput output) {
    ProgressOptions result;
    result.output = output;
    result.now_s = [this] { return now; };
    result.write = [this](std::string_view text) { written.emplace_back(text); };
    return result;
  }
};

TEST(Progress, says_nothing_about_what_is_done_at_once) {
  Stage stage;
  {
    Progress progress("packing", "images", 100, stage.options(ProgressOutput::terminal));
    for (int i = 0; i < 100; ++i) progress.advance();
    stage.now += 2.9;
    progress.finish();
  }
  EXPECT_THAT(stage.written, IsEmpty());
}

TEST(Progress, writes_sparse_whole_lines_where_there_is_no_terminal) {
  Stage stage;
  Progress progress("packing", "images", 1000, stage.options(ProgressOutput::lines));
  for (int second = 1; second <= 40; ++second) {
    stage.now += 1;
    progress.advance(10);
  }
  progress.finish();
  EXPECT_THAT(stage.written, ElementsAre("packing: 30/1000 images (3 %), 10 images/s, 1 min 37 s left\n",
                                         "packing: 330/1000 images (33 %), 10 images/s, 1 min 07 s left\n",
                                         "packing: 400 images in 40 s, 10 images/s\n"));
}

TEST(Progress, draws_over_its_own_line_on_a_terminal) {
  Stage stage;
  Progress progress("scoring", "images", 20, stage.options(ProgressOutput::terminal));
  stage.now += 100;
  progress.advance(1);
  stage.now += 100;
  progress.advance(18);
  progress.advance(1);  // too soon after the one before
  stage.now += 1;
  progress.finish();
  ASSERT_EQ(stage.written.size(), 3U);
  EXPECT_EQ(stage.written[0], "\rscoring: 1/20 images (5 %), 0.0 images/s, 31 min 40 s left");
  EXPECT_EQ(stage.written[1],
            "\rscoring: 19/20 images (95 %), 0.1 images/s, 11 s left     ");  // covers the first
  EXPECT_THAT(stage.written[2], testing::StartsWith("\rscoring: 20 images in 3 min 21 s, 0.1 images/s"));
  EXPECT_THAT(stage.written[2], testing::EndsWith("\n"));
}

TEST(Progress, ends_an_open_terminal_line_when_it_is_left_early) {
  Stage stage;
  {
    Progress progress("scoring", "images", 20, stage.options(ProgressOutput::terminal));
    stage.now += 10;
    progress.advance(1);
  }
  ASSERT_EQ(stage.written.size(), 2U);
  EXPECT_EQ(stage.written.back(), "\n");
}

TEST(Progress, leaves_out_what_it_does_not_know) {
  EXPECT_EQ(format_progress("reading", "files", 12, 0, 4), "reading: 12 files, 3.0 files/s");
  EXPECT_EQ(format_progress("reading", "files", 0, 10, 4), "reading: 0/10 files (0 %), 0.0 files/s");
  EXPECT_EQ(format_progress("reading", "files", 0, 10, 0), "reading: 0/10 files (0 %), 0.0 files/s");
  EXPECT_EQ(format_progress("reading", "files", 10, 10, 5), "reading: 10/10 files (100 %), 2.0 files/s");
}

TEST(Progress, writes_durations_in_two_units_at_most) {
  EXPECT_EQ(format_duration(0.4), "0 s");
  EXPECT_EQ(format_duration(59.4), "59 s");
  EXPECT_EQ(format_duration(59.6), "1 min 00 s");
  EXPECT_EQ(format_duration(3599.4), "59 min 59 s");
  EXPECT_EQ(format_duration(3720), "1 h 02 min");
  EXPECT_EQ(format_duration(100 * 3600), "100 h 00 min");
}

TEST(Progress, counts_what_many_threads_do) {
  Stage stage;
  Progress progress("packing", "images", 4000, stage.options(ProgressOutput::lines));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) progress.advance();
    });
  }
  for (auto& thread : threads) thread.join();
  stage.now += 10;
  progress.finish();
  EXPECT_THAT(stage.written, ElementsAre("packing: 4000 images in 10 s, 400 images/s\n"));
}

TEST(Progress, is_silent_on_other_ranks) {
  set_log_identity({3, 4, "node"});
  Stage stage;
  Progress progress("packing", "images", 10, stage.options(ProgressOutput::lines));
  stage.now += 100;
  progress.advance();
  progress.finish();
  set_log_identity({});
  EXPECT_THAT(stage.written, IsEmpty());
}

}  // namespace
}  // namespace ssd
