// A process that is killed while it saves, or whose disk fails, leaves a whole file that is no older than its
// last completed save.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "support/mounted_tmpfs.hpp"
#include "support/running_program.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

// The number after the last line that begins so; -1 where there is none.
long last_number(const std::string& text, const std::string& beginning) {
  const auto at = ("\n" + text).rfind("\n" + beginning);
  return at == std::string::npos ? -1 : std::stol(text.substr(at + beginning.size()));
}

std::vector<std::string> saving_to(const fs::path& folder, std::vector<std::string> environment = {}) {
  std::vector<std::string> command{"/usr/bin/env"};
  command.insert(command.end(), environment.begin(), environment.end());
  command.insert(command.end(), {SSD_SAVER_PROGRAM, folder.string()});
  return command;
}

// What a later process makes of the folder: the number it goes on from, at least that of the last completed
// save.
void expect_goes_on(const fs::path& folder, long completed, long& from) {
  RunningProgram later(saving_to(folder));
  EXPECT_TRUE(later.wait_for_output("from "));
  ::kill(later.process(), SIGKILL);
  const auto result = later.wait();
  from = last_number(result.out, "from ");
  EXPECT_GE(from, completed) << result.err;
  EXPECT_LE(from, completed + 1) << result.err;  // one that was whole but not yet told of
}

TEST(KilledWhileSaving, T5_11_at_any_moment_it_goes_on_from_its_last_completed_save) {
  const TemporaryFolder folder;
  std::mt19937 random(1);
  long completed = 0, from = 0;
  constexpr long kEnoughSaves = 20;  // a busy machine needs more than 100 kills for them
  for (int kill = 0; kill < 100 || (completed <= kEnoughSaves && kill < 400); ++kill) {
    RunningProgram run(saving_to(folder.path()));
    ASSERT_TRUE(run.wait_for_output("from "));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    ::kill(run.process(), SIGKILL);
    const auto result = run.wait();
    from = last_number(result.out, "from ");
    ASSERT_GE(from, completed) << "kill " << kill << ": " << result.err;
    ASSERT_LE(from, completed + 1) << "kill " << kill << ": " << result.err;
    completed = std::max(from, last_number(result.out, "saved "));
  }
  EXPECT_GT(completed, kEnoughSaves) << "too few saves for a test of them";
}

// Each call of a save that reaches the disk, from the first to those of the third save.
TEST(KilledWhileSaving, before_each_call_that_reaches_the_disk) {
  for (const char* call : {"write", "fsync", "rename"}) {
    for (int skipped = 0; skipped < 12; ++skipped) {
      const TemporaryFolder folder;
      const auto saves = folder.path() / "saves";
      fs::create_directory(saves);
      const auto killed = run_program(saving_to(
          saves, {std::string("LD_PRELOAD=") + SSD_FAULT_LIBRARY, std::string("SSD_FAULT_CALL=") + call,
                  "SSD_FAULT_ACTION=kill", "SSD_FAULT_RANK=0", "SSD_FAULT_PATH=saves",
                  "SSD_FAULT_SKIP=" + std::to_string(skipped)}));
      ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.err;
      long from = 0;
      expect_goes_on(saves, std::max(0L, last_number(killed.out, "saved ")), from);
    }
  }
}

long number_on(const fs::path& folder) {
  RunningProgram later(saving_to(folder));
  EXPECT_TRUE(later.wait_for_output("from "));
  ::kill(later.process(), SIGKILL);
  return last_number(later.wait().out, "from ");
}

TEST(DiskFails, T5_12_full_or_read_only_or_gone_it_saves_on_when_it_can_again) {
  const TemporaryFolder folder;
  MountedTmpfs disk(folder.path() / "disk");
  if (!disk.set(0, "size=6m")) GTEST_SKIP() << "this process may not mount a file system";
  RunningProgram run(saving_to(disk.path() / "saves"));
  ASSERT_TRUE(run.wait_for_output("saved 3\n"));
  // Full: two files of a megabyte stay, and there is no room for a third beside them.
  std::ofstream(disk.path() / "filler") << std::string(std::size_t{8} << 20, 'x');
  ASSERT_TRUE(run.wait_for("given up, older files stay"));
  EXPECT_GE(number_on(disk.path() / "saves"), 3);
  fs::remove(disk.path() / "filler");
  const auto wait_for_next_save = [&] {
    const auto before = last_number(run.output(), "saved ");
    while (last_number(run.output(), "saved ") <= before + 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  wait_for_next_save();
  // Read only.
  while (!disk.set(MS_REMOUNT | MS_RDONLY, ""))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // busy
  ASSERT_TRUE(run.wait_for("Read-only file system"));
  ASSERT_TRUE(disk.set(MS_REMOUNT, ""));
  wait_for_next_save();
  // The folder is gone.
  fs::rename(disk.path() / "saves", disk.path() / "moved");
  wait_for_next_save();
  ::kill(run.process(), SIGKILL);
  const auto completed = last_number(run.wait().out, "saved ");
  EXPECT_GE(number_on(disk.path() / "saves"), completed);
}

}  // namespace
}  // namespace ssd
