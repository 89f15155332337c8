// Packing that is disturbed: killed, out of disk, beside another writer, while its source changes. What is
// left never passes for a set, finished shards are used, and the end is what an undisturbed run gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.hpp"
#include "core/host_name.hpp"
#include "core/random.hpp"
#include "preprocess/pack_runs.hpp"
#include "preprocess/pack_shard.hpp"
#include "record/hdf5.hpp"
#include "record/set_folder.hpp"
#include "record/shard_set.hpp"
#include "support/mounted_tmpfs.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using namespace test;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

const std::vector<std::string> kSmallShards{"--shard-size", "300kB", "--threads", "1"};
constexpr std::size_t kShardCount = 7;  // of the val photos

class Resume : public testing::Test {
 protected:
  std::vector<std::string> command(const fs::path& to) const { return bccd("val", to) + kSmallShards; }
  std::vector<std::string> program(const fs::path& to) const {
    return std::vector<std::string>{kPreprocess.string()} + command(to);
  }
  // What an undisturbed run writes.
  const std::map<std::string, std::string>& expected() {
    if (expected_.empty()) {
      const auto result = preprocess(command(temporary.path() / "undisturbed"));
      EXPECT_EQ(result.exit_code, 0) << result.err;
      expected_ = files_of(temporary.path() / "undisturbed");
    }
    return expected_;
  }
  // A run that ends well, and what it said.
  std::string run_to_the_end() {
    const auto result = preprocess(command(out));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(files_of(out) == expected());
    return result.err;
  }
  fs::path waiting(int shard) const { return out / fmt::format(".val-0000{}-of-00007.h5.waiting", shard); }
  // As a run leaves it that dies before it publishes.
  void leave_waiting_shards() {
    ASSERT_EQ(preprocess(command(out)).exit_code, 0);
    fs::remove(out / "val.manifest.json");
    for (int i = 0; i < static_cast<int>(kShardCount); ++i)
      fs::rename(out / fmt::format("val-0000{}-of-00007.h5", i), waiting(i));
  }

  TemporaryFolder temporary;
  fs::path out = temporary.path() / "out";

 private:
  std::map<std::string, std::string> expected_;
};

TEST_F(Resume, a_run_killed_anywhere_is_gone_on_with_to_the_same_bytes) {
  const auto start = Clock::now();
  expected();
  const double whole_s = std::chrono::duration<double>(Clock::now() - start).count();
  const int kills = std::getenv("SSD_TEST_LONG") != nullptr ? 50 : 4;
  RandomStream random(11, RandomPurpose::test, 0, 0);
  const TemporaryFolder log;
  int killed = 0;
  for (int i = 0; i < kills; ++i) {
    // Every third run begins with what the last one left when it was killed for a second time.
    const int times = i % 3 == 2 ? 2 : 1;
    fs::remove_all(out);
    for (int k = 0; k < times; ++k) {
      const auto child = start_program(program(out), log.path());
      std::this_thread::sleep_for(std::chrono::duration<double>(random.uniform(0, whole_s)));
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
      if (fs::exists(out / "val.manifest.json")) {
        EXPECT_EQ(ShardSet::open(out, Split::val).records().size(), 87U);
      } else {
        EXPECT_THROW(ShardSet::open(out, Split::val), Error);
        ++killed;
      }
    }
    run_to_the_end();
  }
  EXPECT_GT(killed, 0);
}

TEST_F(Resume, finished_shards_are_verified_and_kept) {
  leave_waiting_shards();
  const auto time = fs::last_write_time(waiting(3));
  EXPECT_THAT(run_to_the_end(), HasSubstr("val: 7 shards of a run that did not finish were whole\n"));
  EXPECT_EQ(fs::last_write_time(out / "val-00003-of-00007.h5"), time);
}

TEST_F(Resume, a_shard_that_is_damaged_missing_or_of_another_set_is_made_again) {
  leave_waiting_shards();
  auto text = text_of(waiting(1));
  text[text.size() - 5000] ^= 1;  // in a picture
  write_text(waiting(1), text);
  fs::resize_file(waiting(2), 3000);
  fs::remove(waiting(4));
  text = text_of(waiting(5));
  text[hdf5_data_offset(open_hdf5_file(waiting(5)), "annotations/bbox_xywh") + 6] ^= 1;  // in a box
  write_text(waiting(5), text);
  write_text(out / ".val-00004-of-00007.h5.tmp.somewhere.1", "half a shard");
  const auto said = run_to_the_end();
  EXPECT_THAT(said, HasSubstr("val: removed 1 files of a run that did not finish\n"));
  EXPECT_THAT(said, HasSubstr("warning: shard '" + waiting(2).string() + "': cannot be read"));
  EXPECT_THAT(said, HasSubstr("warning: shard '" + waiting(5).string() + "': damaged: its content"));
  EXPECT_THAT(said, HasSubstr("val: 3 shards of a run that did not finish were whole\n"));

  fs::remove_all(out);
  const auto other =
      preprocess(command(out) + std::vector<std::string>{"--shuffle-seed", "1", "--limit", "80"});
  ASSERT_EQ(other.exit_code, 0) << other.err;
  fs::remove(out / "val.manifest.json");
  EXPECT_THAT(run_to_the_end(), testing::Not(HasSubstr("were whole")));
}

TEST_F(Resume, a_shard_whose_pictures_changed_at_the_same_size_is_made_again) {
  const auto images = temporary.path() / "images";
  fs::copy(kBccd / "JPEGImages", images);
  const auto arguments = bccd("val", out, images) + kSmallShards;
  ASSERT_EQ(preprocess(arguments).exit_code, 0);
  const auto set = ShardSet::open(out, Split::val);
  const auto& record = set.records()[40];
  auto picture = text_of(images / record.file_name);
  picture[14] ^= 1;  // in the JFIF marker's density: it decodes to the same pixels
  write_text(images / record.file_name, picture);
  fs::remove(out / "val.manifest.json");
  const auto result = preprocess(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("val: 6 shards of a run that did not finish were whole\n"));
}

TEST_F(Resume, shards_of_the_same_pictures_with_another_box_are_made_again) {
  leave_waiting_shards();
  auto set = nlohmann::json::parse(text_of(kBccd / "coco/instances_val.json"));
  auto& width = set["annotations"][3]["bbox"][2];
  width = width.get<double>() + 1;
  const auto json_path = temporary.path() / "a.json";
  write_text(json_path, set.dump());
  const auto with_other_box = [&](const fs::path& to) {
    auto arguments = command(to);
    arguments[3] = json_path.string();
    const auto result = preprocess(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.err;
  };
  EXPECT_THAT(with_other_box(out), testing::Not(HasSubstr("were whole")));
  with_other_box(temporary.path() / "other");
  EXPECT_TRUE(files_of(out) == files_of(temporary.path() / "other"));
}

// Two shards of two pictures, in place of another set.
TEST_F(Resume, a_run_killed_before_any_sync_or_rename_is_gone_on_with_to_the_same_bytes) {
  const std::vector<std::string> options{"--shard-size", "60kB", "--threads", "1", "--limit", "4", "--force"};
  const auto undisturbed = temporary.path() / "small";
  ASSERT_EQ(preprocess(bccd("val", undisturbed) + options).exit_code, 0);
  const auto small = files_of(undisturbed);
  ASSERT_EQ(small.size(), 3U);
  const auto old = temporary.path() / "old";
  ASSERT_EQ(preprocess(bccd("val", old) + std::vector<std::string>{"--limit", "1"}).exit_code, 0);
  // Of each shard: two of the file and one of the folder, once waiting (3) and once published (2); of the
  // manifest 3; and one of the folder without the old manifest. Names: two of each shard, one of the
  // manifest.
  for (const auto& [call, count] :
       {std::pair{"fsync", 2 * (3 + 2) + 3 + 1}, std::pair{"rename", 2 * 2 + 1}}) {
    for (int skipped = 0; skipped <= count; ++skipped) {
      SCOPED_TRACE(fmt::format("{} {}", call, skipped));
      fs::remove_all(out);
      fs::copy(old, out);
      const auto killed = run_program(
          std::vector<std::string>{"/usr/bin/env", std::string("LD_PRELOAD=") + SSD_FAULT_LIBRARY,
                                   std::string("SSD_FAULT_CALL=") + call, "SSD_FAULT_ACTION=kill",
                                   "SSD_FAULT_RANK=0", "SSD_FAULT_PATH=" + out.string(),
                                   fmt::format("SSD_FAULT_SKIP={}", skipped), kPreprocess.string()} +
          bccd("val", out) + options);
      ASSERT_EQ(killed.exit_code, skipped == count ? 0 : 128 + SIGKILL) << killed.err;
      if (fs::exists(out / "val.manifest.json")) {
        const auto count_of_records = ShardSet::open(out, Split::val).records().size();
        EXPECT_TRUE(count_of_records == 1 || count_of_records == 4) << count_of_records;
      }
      const auto result = preprocess(bccd("val", out) + options);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_TRUE(files_of(out) == small);
    }
  }
}

TEST_F(Resume, one_rank_that_fails_ends_all_with_one_line) {
  fs::create_directories(waiting(1));  // a file cannot take this name
  const auto result = preprocess_on_ranks(3, command(out));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("error: cannot rename to '" + waiting(1).string() + "': Is a directory\n"));
  EXPECT_EQ(result.err.find("error:"), result.err.rfind("error:")) << result.err;
  EXPECT_FALSE(fs::exists(out / "val.manifest.json"));
  fs::remove(waiting(1));
  EXPECT_THAT(run_to_the_end(), HasSubstr("val: 2 shards of a run that did not finish were whole\n"));
}

TEST_F(Resume, two_writers_of_one_split_are_kept_apart) {
  const SetFolder folder(out, Split::val);
  const auto result = preprocess(command(out));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr(fmt::format(
                  "error: '{}': process {} on {} is writing val shards there; wait for it, or end it\n",
                  out.string(), ::getpid(), host_name())));
}

TEST_F(Resume, T4_09_a_full_disk_is_told_and_nothing_is_lost) {
  MountedTmpfs disk(out);
  if (!disk.set(0, "size=1m")) GTEST_SKIP() << "cannot mount a tmpfs: " << std::strerror(errno);
  const auto result = preprocess(command(out));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(last_line(result.err), HasSubstr("error: cannot write shard"));
  EXPECT_THAT(last_line(result.err), HasSubstr("No space left on device"));
  EXPECT_THROW(ShardSet::open(out, Split::val), Error);
  for (const auto& [name, text] : files_of(out)) EXPECT_THAT(name, testing::EndsWith(".waiting"));
  ASSERT_TRUE(disk.set(MS_REMOUNT, "size=8m"));
  EXPECT_THAT(run_to_the_end(), HasSubstr("shards of a run that did not finish were whole\n"));
}

TEST_F(Resume, a_target_that_cannot_be_written_is_told) {
  MountedTmpfs disk(out);
  if (!disk.set(MS_RDONLY, "")) GTEST_SKIP() << "cannot mount a tmpfs: " << std::strerror(errno);
  const auto result = preprocess(command(out));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(last_line(result.err),
            fmt::format("error: cannot write into '{}': Read-only file system", out.string()));
}

TEST_F(Resume, annotations_that_change_meanwhile_are_noticed) {
  const auto annotations = temporary.path() / "a.json";
  fs::copy_file(kBccd / "coco/instances_train.json", annotations);
  auto arguments = std::vector<std::string>{kPreprocess.string()} + bccd("train", out) + kSmallShards;
  arguments[4] = annotations.string();
  const TemporaryFolder log;
  const auto child = start_program(arguments, log.path());
  while (!fs::exists(out) || files_of(out).size() < 2) ::usleep(1000);  // the lock, and a shard of 16
  fs::last_write_time(annotations, fs::last_write_time(annotations) + std::chrono::seconds(1));
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(
      last_line(text_of(log.path() / "err")),
      fmt::format("error: '{}' changed while the set was packed; nothing was published; run ssd_preprocess "
                  "again",
                  annotations.string()));
  EXPECT_THROW(ShardSet::open(out, Split::train), Error);
}

TEST_F(Resume, a_picture_that_changes_meanwhile_is_noticed) {
  const SplitSource split{Split::val, kBccd / "coco/instances_val.json", kBccd / "JPEGImages", std::nullopt};
  const auto source = read_source_set(split, MpiComm());
  auto sizes = measure_files(source, 1, MpiComm());
  ++sizes[2];  // it was longer when the plan was made
  const auto plan = make_plan(source, sizes, {});
  EXPECT_EQ(
      message_of<Error>([&] {
        pack_shard({source, plan, 1, [] {}}, 0, WriteShard::yes, temporary.path() / "shard.h5");
      }),
      fmt::format("'{}' (image {}): changed while the set was packed; run ssd_preprocess again when nothing "
                  "writes there",
                  (split.images / source.set.images[2].file_name).string(), source.set.images[2].id.value()));
  EXPECT_TRUE(fs::is_empty(temporary.path()));
}

}  // namespace
}  // namespace ssd
