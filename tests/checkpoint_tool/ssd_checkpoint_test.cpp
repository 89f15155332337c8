// The program: what it prints, writes and returns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/checkpoint.hpp"
#include "support/run_program.hpp"

namespace ssd {
namespace {

using testing::HasSubstr;

const std::string kTool = SSD_BIN_DIR "/ssd_checkpoint";

// A file that torch.save wrote.
const std::string kFile = SSD_TEST_DATA "/checkpoint/small/tiny_half.pt";

TEST(SsdCheckpoint, shows_compares_and_shrinks) {
  const TemporaryFolder folder;
  const auto shown = run_program({kTool, kFile});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("float16"));
  const auto same = run_program({kTool, kFile, "--compare", kFile});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  const auto output = (folder.path() / "w.pt").string();
  const auto written = run_program({kTool, kFile, "--output", output, "--weights-only", "--dtype", "fp32"});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const auto other = run_program({kTool, kFile, "--compare", output});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.out, HasSubstr("float16"));
}

TEST(SsdCheckpoint, one_line_for_what_is_wrong) {
  const auto missing = run_program({kTool, "/nowhere.pt"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("/nowhere.pt"));
  EXPECT_EQ(run_program({kTool}).exit_code, 2);
  const TemporaryFolder folder;
  const auto evil = run_program({kTool, SSD_TEST_DATA "/checkpoint/small/evil_path_key.pt", "--output",
                                 (folder.path() / "w.pt").string(), "--weights-only"});
  EXPECT_EQ(evil.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "w.pt"));
}

}  // namespace
}  // namespace ssd
