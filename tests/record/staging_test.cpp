// Copies on a node's own disk: whole or not there, made once, gone on with, left alone.
#include "record/staging.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <functional>
#include <set>

#include "core/atomic_file.hpp"
#include "core/error.hpp"
#include "record/made_set.hpp"
#include "record/shard_set.hpp"
#include "support/die_before_call.hpp"
#include "support/disk_calls.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

ino_t inode_of(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// The exit status of a process that does the work.
int in_a_process(const std::function<void()>& work) {
  const auto child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

class StagingTest : public testing::Test {
 protected:
  void SetUp() override {
    write_made_set(source, records, {.shard_count = 3});
    write_made_set(source, made_records(2), {.split = Split::val, .shard_count = 1});
  }
  StagedShards stage() const { return stage_shards(source, stage_dir); }
  std::string failure() const {
    return message_of<Error>([&] { stage(); });
  }
  bool is_like_the_source(const fs::path& folder) const {
    for (const Split split : {Split::train, Split::val}) {
      const auto a = ShardSet::open(source, split);
      const auto b = ShardSet::open(folder, split);
      if (!(a.digest() == b.digest()) || a.records().size() != b.records().size()) return false;
      std::vector<std::byte> x, y;  // buffers
      for (std::size_t i = 0; i < a.records().size(); ++i) {
        if (!std::ranges::equal(a.read_jpeg(a.records()[i], x), b.read_jpeg(b.records()[i], y))) return false;
      }
    }
    return true;
  }
  static bool has_temporary_files(const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(folder))
      if (is_temporary_name(entry.path().filename().string())) return true;
    return false;
  }

  std::vector<MadeRecord> records = made_records(9);
  TemporaryFolder temporary;
  fs::path source = temporary.path() / "shared";
  fs::path stage_dir = temporary.path() / "local" / "of" / "job";
  std::string first = "train-00000-of-00003.h5";
  std::string last = "train-00002-of-00003.h5";
};

TEST_F(StagingTest, copies_both_splits_and_leaves_alone_what_is_there) {
  const auto staged = stage();
  EXPECT_EQ(staged.copied_files, 4U);
  EXPECT_EQ(staged.folder.parent_path(), stage_dir);
  EXPECT_TRUE(is_like_the_source(staged.folder));
  EXPECT_FALSE(has_temporary_files(staged.folder));
  const auto inode = inode_of(staged.folder / first);
  const auto changed = fs::last_write_time(staged.folder);
  const auto again = stage();
  EXPECT_EQ(again.folder, staged.folder);
  EXPECT_EQ(again.copied_files, 0U);
  EXPECT_EQ(again.copied_bytes, 0U);
  EXPECT_EQ(inode_of(staged.folder / first), inode);
  EXPECT_EQ(fs::last_write_time(staged.folder), changed);
}

TEST_F(StagingTest, goes_on_with_the_shards_that_are_missing) {
  const auto folder = stage().folder;
  const auto inode = inode_of(folder / first);
  fs::remove(folder / "train.manifest.json");
  fs::remove(folder / last);
  write_text(folder / ".train-00002-of-00003.h5.tmp.host.17", "what a dead job left");
  const auto staged = stage();
  EXPECT_EQ(staged.copied_files, 1U);
  EXPECT_EQ(inode_of(folder / first), inode);
  EXPECT_TRUE(is_like_the_source(folder));
  EXPECT_FALSE(has_temporary_files(folder));
}

TEST_F(StagingTest, a_shard_of_another_size_is_copied_again) {
  const auto folder = stage().folder;
  fs::resize_file(folder / first, 100);
  EXPECT_EQ(stage().copied_files, 1U);
  EXPECT_TRUE(is_like_the_source(folder));
}

TEST_F(StagingTest, sets_of_other_content_lie_side_by_side) {
  const auto staged = stage();
  write_made_set(source, made_records(9), {.shard_count = 3, .identity = std::string(32, 'e')});
  const auto other = stage();
  EXPECT_NE(other.folder, staged.folder);
  EXPECT_TRUE(is_like_the_source(other.folder));
  EXPECT_TRUE(fs::exists(staged.folder / last));
}

TEST_F(StagingTest, one_split_alone_is_staged) {
  fs::remove(source / "val.manifest.json");
  const auto staged = stage();
  EXPECT_EQ(staged.copied_files, 3U);
  EXPECT_NO_THROW(ShardSet::open(staged.folder, Split::train));
}

TEST_F(StagingTest, a_folder_without_sets_is_returned_as_it_is) {
  const auto staged = stage_shards(temporary.path() / "nothing", stage_dir);
  EXPECT_EQ(staged.folder, temporary.path() / "nothing");
  EXPECT_FALSE(fs::exists(stage_dir));
}

TEST_F(StagingTest, too_little_space_is_said_before_a_byte_is_copied) {
  auto text = text_of(source / "train.manifest.json");
  const auto at = text.find("\"file_bytes\": ") + 14;
  text.replace(at, text.find(',', at) - at, "2000000000000000");  // 2 PB
  write_text(source / "train.manifest.json", text);
  EXPECT_THAT(failure(), HasSubstr("2000000.0 GB needed for 4 shards, "));
  for (const auto& entry : fs::recursive_directory_iterator(stage_dir))
    EXPECT_NE(entry.path().extension(), ".h5");
}

TEST_F(StagingTest, a_source_that_is_damaged_cut_off_or_incomplete_is_named_and_nothing_of_it_remains) {
  const auto path = source / last;
  const auto good = text_of(path);
  auto flipped = good;
  // In the HDF5 file's metadata, which the content digest covers; the shard's own name for its set.
  flipped.replace(flipped.find(std::string(32, 'a')), 1, "b");
  for (const auto& text : {flipped, good.substr(0, good.size() - 1), std::string()}) {
    write_text(path, text);
    if (text.empty()) fs::remove(path);
    EXPECT_THAT(failure(), HasSubstr("train-00002-of-00003.h5'"));
    for (const auto& entry : fs::directory_iterator(stage_dir)) {
      EXPECT_TRUE(fs::exists(entry.path() / first));
      EXPECT_FALSE(fs::exists(entry.path() / last));
      EXPECT_FALSE(fs::exists(entry.path() / "train.manifest.json"));
      EXPECT_FALSE(has_temporary_files(entry.path()));
    }
  }
  write_text(path, good);
  EXPECT_EQ(stage().copied_files, 2U);  // the last of train, and val
}

TEST_F(StagingTest, a_manifest_that_names_other_files_is_refused) {
  auto text = text_of(source / "train.manifest.json");
  text.replace(text.find(first), first.size(), "../outside.h5");
  write_text(source / "train.manifest.json", text);
  EXPECT_THAT(failure(), HasSubstr("'../outside.h5' is not the name of a shard"));
}

TEST_F(StagingTest, a_disk_that_fills_up_leaves_no_part_of_a_shard) {
  const auto limit = [](bool ignored) {
    if (ignored) std::signal(SIGXFSZ, SIG_IGN);
    std::freopen("/dev/null", "w", stderr);  // the limit is for what the log is redirected to as well
    const struct rlimit small { 2000, 2000 };
    ::setrlimit(RLIMIT_FSIZE, &small);
  };
  fs::path folder;
  // A write that fails.
  EXPECT_EQ(in_a_process([&] {
              limit(true);
              const auto message = failure();
              ::_exit(message.starts_with("cannot write '") ? 0 : 1);
            }),
            0);
  for (const auto& entry : fs::directory_iterator(stage_dir)) folder = entry.path();
  EXPECT_FALSE(has_temporary_files(folder));
  // A process that dies in the middle of a shard.
  EXPECT_TRUE(WIFSIGNALED(in_a_process([&] {
    limit(false);
    stage();
  })));
  EXPECT_TRUE(has_temporary_files(folder));
  EXPECT_FALSE(fs::exists(folder / first));
  EXPECT_EQ(stage().copied_files, 4U);
  EXPECT_TRUE(is_like_the_source(folder));
  EXPECT_FALSE(has_temporary_files(folder));
}

TEST_F(StagingTest, a_copy_that_reads_back_otherwise_is_refused) {
  const auto folder = stage().folder;
  const auto expect_refusal = [&](const std::string& name) {
    fs::remove_all(folder);
    test::DiskCalls calls(folder);
    calls.spoil("write ." + name + ".tmp", test::Spoil::flip);
    EXPECT_EQ(failure(),
              fmt::format("shard '{}': read back from '{}', the copy differs; is that disk healthy?",
                          (source / name).string(), folder.string()));
    EXPECT_FALSE(fs::exists(folder / name));
    EXPECT_FALSE(fs::exists(folder / "train.manifest.json"));
    EXPECT_FALSE(has_temporary_files(folder));
  };
  expect_refusal(first);
  expect_refusal(last);
  EXPECT_EQ(stage().copied_files, 2U);  // the last of train, and val
  EXPECT_TRUE(is_like_the_source(folder));
}

TEST_F(StagingTest, every_copy_is_synced_and_read_back_before_it_takes_its_name_and_manifests_are_last) {
  const auto folder = stage().folder;
  fs::remove_all(folder);
  const test::DiskCalls calls(folder);
  stage();
  std::vector<std::string> expected;
  for (const std::string& name :
       {first, std::string("train-00001-of-00003.h5"), last, std::string("val-00000-of-00001.h5")}) {
    const auto unfinished = "." + name + ".tmp";
    expected.insert(expected.end(), {"write " + unfinished, "fsync " + unfinished, "forget " + unfinished,
                                     "fsync " + unfinished, "rename " + unfinished + " " + name, "fsync ."});
  }
  for (const std::string name : {"train.manifest.json", "val.manifest.json"}) {
    const auto unfinished = "." + name + ".tmp";
    expected.insert(expected.end(), {"write " + unfinished, "fsync " + unfinished, "fsync " + unfinished,
                                     "rename " + unfinished + " " + name, "fsync ."});
  }
  EXPECT_EQ(calls.lines(), expected);
}

TEST_F(StagingTest, a_job_that_dies_before_any_call_leaves_what_the_next_one_goes_on_with) {
  const auto folder = stage().folder;
  std::size_t number = 0;
  while (true) {
    SCOPED_TRACE(number);
    fs::remove_all(folder);
    if (!test::die_before_call(number, folder, [&] { stage(); })) break;
    std::size_t whole = 0;
    for (const auto& entry : fs::directory_iterator(folder)) whole += entry.path().extension() == ".h5";
    EXPECT_EQ(stage().copied_files, 4 - whole);
    EXPECT_TRUE(is_like_the_source(folder));
    EXPECT_FALSE(has_temporary_files(folder));
    ++number;
  }
  EXPECT_EQ(number, 4U * 6 + 2 * 5);
}

TEST_F(StagingTest, another_manifest_of_the_same_length_is_replaced) {
  const auto folder = stage().folder;
  const auto text = text_of(folder / "train.manifest.json");
  write_text(folder / "train.manifest.json", text.substr(0, text.size() - 2) + " \n");
  EXPECT_EQ(stage().copied_files, 0U);
  EXPECT_EQ(text_of(folder / "train.manifest.json"), text);
}

TEST_F(StagingTest, a_stage_folder_that_cannot_be_made_is_named) {
  write_text(temporary.path() / "local", "a file");
  EXPECT_THAT(failure(), HasSubstr("cannot be made: Not a directory"));
}

TEST_F(StagingTest, jobs_of_one_node_at_once_make_one_copy) {
  constexpr int kJobs = 4;
  std::vector<pid_t> children;
  for (int job = 0; job < kJobs; ++job) {
    children.push_back(::fork());
    if (children.back() == 0) {
      const auto staged = stage();
      ::_exit(is_like_the_source(staged.folder) ? static_cast<int>(staged.copied_files) : 99);
    }
  }
  std::multiset<int> copied;
  for (const auto child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    copied.insert(WEXITSTATUS(status));
  }
  EXPECT_EQ(copied, (std::multiset<int>{0, 0, 0, 4}));
}

}  // namespace
}  // namespace ssd
