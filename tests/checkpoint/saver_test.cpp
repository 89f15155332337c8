// What a saver leaves in its folder: which files, in which order, and what it does when that fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/checkpoint_saver.hpp"
#include "core/error.hpp"
#include "support/disk_calls.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using test::DiskCalls;
using test::Spoil;
using testing::ElementsAre;
using Names = std::set<std::string>;

Value state(std::int64_t number) {
  Dict root;
  root.set("model", Dict(Dict::Kind::ordered));
  root.set("number", number);
  return root;
}

class Saver : public testing::Test {
 protected:
  SaverOptions options(int keep = 0) const { return {folder, keep, 2, .01}; }
  static bool save(CheckpointSaver& saver, const std::string& name, std::int64_t number = 0) {
    saver.start(name, [=] { return state(number); });
    return saver.wait();
  }
  Names names() const {
    Names found;
    for (const auto& entry : fs::directory_iterator(folder)) found.insert(entry.path().filename().string());
    return found;
  }
  // The time of a file, in hours from now.
  void set_hours(const std::string& name, int hours) const {
    fs::last_write_time(folder / name, fs::file_time_type::clock::now() + std::chrono::hours(hours));
  }

  TemporaryFolder temporary;
  fs::path folder = temporary.path() / "saves";
};

TEST_F(Saver, keeps_as_many_epochs_as_it_is_told_the_newest_first) {
  for (const int keep : {0, 1, 2, 3}) {
    fs::remove_all(folder);
    CheckpointSaver saver(options(keep));
    for (int epoch = 0; epoch < 5; ++epoch) {
      ASSERT_TRUE(save(saver, fmt::format("epoch_{}.pt", epoch)));
      Names expected{"latest"};
      for (int kept = 0; kept <= epoch; ++kept)
        if (keep == 0 || kept > epoch - keep) expected.insert(fmt::format("epoch_{}.pt", kept));
      EXPECT_EQ(names(), expected) << keep;
      set_hours(fmt::format("epoch_{}.pt", epoch), epoch - 10);
    }
  }
}

TEST_F(Saver, never_removes_what_it_has_just_written) {
  {
    CheckpointSaver saver(options());
    for (const auto* name : {"epoch_0.pt", "epoch_1.pt"}) ASSERT_TRUE(save(saver, name));
  }
  set_hours("epoch_0.pt", 1);  // the clock has been set back since
  set_hours("epoch_1.pt", 2);
  CheckpointSaver saver(options(2));
  ASSERT_TRUE(save(saver, "epoch_2.pt"));
  EXPECT_EQ(names(), (Names{"epoch_1.pt", "epoch_2.pt", "latest"}));
  CheckpointSaver other(options(1));
  ASSERT_TRUE(save(other, "epoch_3.pt"));
  EXPECT_EQ(names(), (Names{"epoch_3.pt", "latest"}));
}

TEST_F(Saver, a_file_between_epochs_stays_until_the_next_one_is_written) {
  for (const int keep : {0, 1, 2}) {
    fs::remove_all(folder);
    CheckpointSaver saver(options(keep));
    const auto after = [&](const std::string& name, int hours) {
      EXPECT_TRUE(save(saver, name));
      set_hours(name, hours);
      return names();
    };
    EXPECT_EQ(after("iteration_5.pt", -9), (Names{"iteration_5.pt", "latest"}));
    EXPECT_EQ(after("iteration_8.pt", -8), (Names{"iteration_8.pt", "latest"}));
    EXPECT_EQ(after("epoch_0.pt", -7), (Names{"epoch_0.pt", "latest"}));
    const auto with_epoch =
        keep == 1 ? Names{"iteration_12.pt", "latest"} : Names{"epoch_0.pt", "iteration_12.pt", "latest"};
    EXPECT_EQ(after("iteration_12.pt", -6), with_epoch);
    const auto last = keep == 1   ? Names{"epoch_1.pt", "latest"}
                      : keep == 2 ? Names{"epoch_0.pt", "epoch_1.pt", "latest"}
                                  : Names{"epoch_0.pt", "epoch_1.pt", "latest"};
    EXPECT_EQ(after("epoch_1.pt", -5), last);
  }
}

TEST_F(Saver, leaves_other_files_alone) {
  const Names others{"epoch_1.pt.bak", "epoch_x.pt", "iteration_.pt", "iteration_1x.pt", "log.json"};
  for (const auto& name : others) write_text(folder / name, "");
  CheckpointSaver saver(options(1));
  ASSERT_TRUE(save(saver, "epoch_0.pt"));
  auto expected = others;
  expected.insert({"epoch_0.pt", "latest"});
  EXPECT_EQ(names(), expected);
}

TEST_F(Saver, writes_the_file_then_latest_and_removes_older_ones_last) {
  CheckpointSaver saver(options(1));
  ASSERT_TRUE(save(saver, "epoch_0.pt"));
  const DiskCalls calls(folder);
  ASSERT_TRUE(save(saver, "epoch_1.pt"));
  EXPECT_THAT(
      calls.lines(),
      ElementsAre("write .epoch_1.pt.tmp", "fsync .epoch_1.pt.tmp", "fsync .epoch_1.pt.tmp",
                  "rename .epoch_1.pt.tmp epoch_1.pt", "fsync .", "write .latest.tmp", "fsync .latest.tmp",
                  "fsync .latest.tmp", "rename .latest.tmp latest", "fsync .", "unlink epoch_0.pt"));
  EXPECT_EQ(text_of(folder / "latest"), "epoch_1.pt\n");
}

TEST_F(Saver, a_call_that_fails_once_is_made_again) {
  CheckpointSaver saver(options(1));
  ASSERT_TRUE(save(saver, "epoch_0.pt"));
  for (std::size_t number = 0; number < 10; ++number) {
    SCOPED_TRACE(number);
    const auto name = fmt::format("epoch_{}.pt", number + 1);
    DiskCalls calls(folder);
    calls.spoil_number(number, Spoil::fail);
    EXPECT_TRUE(save(saver, name));
    EXPECT_EQ(names(), (Names{name, "latest"}));
    EXPECT_EQ(text_of(folder / "latest"), name + "\n");
    EXPECT_EQ(saver.last_written(), folder / name);
  }
}

TEST_F(Saver, gives_up_after_its_tries_and_what_is_there_stays) {
  CheckpointSaver saver({folder, 1, 3, .01});
  ASSERT_TRUE(save(saver, "epoch_0.pt"));
  fs::create_directories(folder / "epoch_1.pt");  // no file can take this name
  testing::internal::CaptureStderr();
  EXPECT_FALSE(save(saver, "epoch_1.pt"));
  const auto said = testing::internal::GetCapturedStderr();
  const auto count = [&](const std::string& text) {
    int times = 0;
    for (auto at = said.find(text); at != said.npos; at = said.find(text, at + 1)) ++times;
    return times;
  };
  EXPECT_EQ(count("; it is tried again\n"), 2) << said;
  EXPECT_EQ(count("; given up, older files stay\n"), 1) << said;
  EXPECT_EQ(text_of(folder / "latest"), "epoch_0.pt\n");
  EXPECT_EQ(saver.last_written(), folder / "epoch_0.pt");
  EXPECT_FALSE(saver.is_busy());
  EXPECT_EQ(names(), (Names{"epoch_0.pt", "epoch_1.pt", "latest"}));
  EXPECT_TRUE(save(saver, "epoch_2.pt"));  // and the next one goes well
}

// A pause of an hour before the next try: neither who waits nor the saver's end keeps to it.
TEST_F(Saver, whoever_waits_is_not_kept_and_its_end_gives_up) {
  fs::create_directories(folder / "epoch_0.pt");
  CheckpointSaver waited_for({folder, 0, 2, 3600});
  EXPECT_FALSE(save(waited_for, "epoch_0.pt"));
  CheckpointSaver ended({folder, 0, 2, 3600});
  ended.start("epoch_0.pt", [] { return state(0); });
}

TEST_F(Saver, a_save_begins_when_the_one_before_is_written) {
  CheckpointSaver saver(options());
  saver.start("epoch_0.pt", [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return state(0);
  });
  EXPECT_TRUE(saver.is_busy());
  saver.start("epoch_1.pt", [] { return state(1); });
  EXPECT_TRUE(fs::exists(folder / "epoch_0.pt"));
  EXPECT_TRUE(saver.wait());
  EXPECT_EQ(read_checkpoint_file(folder / "epoch_1.pt").at("number").integer(), 1);
}

TEST_F(Saver, a_state_that_cannot_be_made_is_not_written) {
  CheckpointSaver saver(options());
  int times = 0;
  saver.start("epoch_0.pt", [&]() -> Value {
    ++times;
    throw Error("no state");
  });
  EXPECT_FALSE(saver.wait());
  EXPECT_EQ(times, 1);
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_EQ(saver.last_written(), "");
}

class WholeCheckpoint : public Saver {
 protected:
  WholeCheckpoint() {
    CheckpointSaver saver(options());
    for (int epoch = 0; epoch < 3; ++epoch) {
      EXPECT_TRUE(save(saver, fmt::format("epoch_{}.pt", epoch)));
      set_hours(fmt::format("epoch_{}.pt", epoch), epoch - 10);
    }
  }
  void damage(const std::string& name) const {
    const auto time = fs::last_write_time(folder / name);
    fs::resize_file(folder / name, fs::file_size(folder / name) - 1);
    fs::last_write_time(folder / name, time);
  }
  std::string found() const { return find_whole_checkpoint(folder).value_or("").filename().string(); }
};

TEST_F(WholeCheckpoint, is_the_one_that_latest_names_or_else_the_newest) {
  EXPECT_EQ(found(), "epoch_2.pt");
  write_text(folder / "latest", "epoch_1.pt\n");
  EXPECT_EQ(found(), "epoch_1.pt");
  for (const auto* text : {"", "../epoch_1.pt\n", "epoch_7.pt\n", "log.json\n"}) {
    write_text(folder / "latest", text);
    EXPECT_EQ(found(), "epoch_2.pt") << text;
  }
  fs::remove(folder / "latest");
  EXPECT_EQ(found(), "epoch_2.pt");
  set_hours("epoch_0.pt", 0);
  EXPECT_EQ(found(), "epoch_0.pt");
}

TEST_F(WholeCheckpoint, is_looked_for_among_older_ones_where_the_newest_is_damaged) {
  damage("epoch_2.pt");
  EXPECT_EQ(found(), "epoch_1.pt");
  const auto time = fs::last_write_time(folder / "epoch_1.pt");
  write_checkpoint_file(folder / "epoch_1.pt", Dict());  // whole, but not one of training
  fs::last_write_time(folder / "epoch_1.pt", time);
  EXPECT_EQ(found(), "epoch_0.pt");
  damage("epoch_0.pt");
  EXPECT_THAT(message_of<Error>([&] { found(); }),
              testing::StartsWith(fmt::format("--checkpoint auto: of 3 checkpoints in '{}' none is whole (",
                                              folder.string())));
  fs::remove_all(folder);
  EXPECT_EQ(find_whole_checkpoint(folder), std::nullopt);
  fs::create_directories(folder);
  EXPECT_EQ(find_whole_checkpoint(folder), std::nullopt);
}

}  // namespace
}  // namespace ssd
