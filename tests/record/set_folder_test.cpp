// What a run that dies leaves behind, and what the next one makes of it.
#include "record/set_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/atomic_file.hpp"
#include "core/error.hpp"
#include "core/host_name.hpp"
#include "record/made_set.hpp"
#include "record/shard_set.hpp"
#include "support/die_before_call.hpp"
#include "support/disk_calls.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

const std::set<std::string> kComplete{"train-00000-of-00002.h5", "train-00001-of-00002.h5",
                                      "train.manifest.json"};

class SetFolderTest : public testing::Test {
 protected:
  // Runs in a process of its own that dies at the end, without destructors.
  static void die_after(const std::function<void()>& work) {
    const auto child = ::fork();
    if (child == 0) {
      work();
      ::_exit(7);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  }
  bool opens() const {
    try {
      ShardSet::open(path, Split::train);
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  ShardSummary write_shard(const SetFolder& folder, std::uint32_t index) const {
    ShardWriter writer({Split::train, index, 2, std::string(32, 'c'), "{}"}, made_categories());
    writer.add(records[index].record, records[index].jpeg);
    return writer.close(folder.temporary_path(index, 2));
  }

  std::vector<MadeRecord> records = made_records(2);
  TemporaryFolder temporary;
  fs::path path = temporary.path() / "set";
};

TEST_F(SetFolderTest, what_a_run_that_dies_leaves_does_not_open_and_finished_shards_wait_for_the_next) {
  const std::set<std::string> both{".train-00000-of-00002.h5.waiting", ".train-00001-of-00002.h5.waiting"};
  const std::set<std::string> first{".train-00000-of-00002.h5.waiting"};
  const std::vector<std::pair<std::function<void()>, std::set<std::string>>> deaths{
      {[&] {  // while shards are written
         const auto* folder = new SetFolder(path, Split::train);
         write_shard(*folder, 0);
         write_text(temporary_path_for(path / "train-00001-of-00002.h5"), "half a shard");
       },
       first},
      {[&] {  // in the middle of publishing
         const auto* folder = new SetFolder(path, Split::train);
         const auto summary = write_shard(*folder, 0);
         write_shard(*folder, 1);
         rename_durably(folder->temporary_path(0, 2), path / summary.file_name);
       },
       both},
      {[&] {  // while the manifest is written
         write_made_set(path, records);
         write_text(temporary_path_for(path / "train.manifest.json"), "{}");
         fs::remove(path / "train.manifest.json");
       },
       both}};
  for (std::size_t i = 0; i < deaths.size(); ++i) {
    SCOPED_TRACE(i);
    die_after(deaths[i].first);
    EXPECT_FALSE(opens());
    {
      SetFolder folder(path, Split::train);
      EXPECT_EQ(folder.existing(std::string(32, 'c')), ExistingSet::none);
      EXPECT_EQ(folder.clean(2), i == 1 ? 0U : 1U);
    }
    EXPECT_EQ(names_in(path), deaths[i].second);
    EXPECT_FALSE(opens());
    {
      SetFolder folder(path, Split::train);
      EXPECT_EQ(folder.clean(3), deaths[i].second.size());  // not of a set of 3
    }
    EXPECT_TRUE(names_in(path).empty());
    write_made_set(path, records);
    EXPECT_TRUE(opens());
    EXPECT_EQ(names_in(path), kComplete);
    fs::remove_all(path);
  }
}

TEST_F(SetFolderTest, a_run_that_dies_beside_a_complete_set_leaves_that_as_it_is) {
  write_made_set(path, records);
  die_after([&] {
    auto* folder = new SetFolder(path, Split::train);
    write_shard(*folder, 0);
  });
  EXPECT_TRUE(opens());
  EXPECT_EQ(SetFolder(path, Split::train).clean(0), 1U);
  EXPECT_EQ(names_in(path), kComplete);
  EXPECT_TRUE(opens());
}

TEST_F(SetFolderTest, tells_the_same_set_from_another_and_from_a_damaged_one) {
  write_made_set(path, records, {.identity = std::string(32, 'd')});
  const SetFolder folder(path, Split::train);
  EXPECT_EQ(folder.existing(std::string(32, 'd')), ExistingSet::same);
  EXPECT_EQ(folder.existing(std::string(32, 'e')), ExistingSet::other);
  EXPECT_EQ(SetFolder(path, Split::val).existing(std::string(32, 'd')), ExistingSet::none);
  fs::remove(path / "train-00001-of-00002.h5");
  EXPECT_EQ(folder.existing(std::string(32, 'd')), ExistingSet::other);
}

TEST_F(SetFolderTest, publishing_replaces_a_set_of_more_shards_and_leaves_the_other_split_alone) {
  write_made_set(path, records, {.split = Split::val});
  write_made_set(path, made_records(6), {.shard_count = 3});
  write_made_set(path, records);
  auto expected = kComplete;
  expected.insert({"val-00000-of-00002.h5", "val-00001-of-00002.h5", "val.manifest.json"});
  EXPECT_EQ(names_in(path), expected);
  EXPECT_TRUE(opens());
  EXPECT_NO_THROW(ShardSet::open(path, Split::val));
}

// What reaches the disk while two shards are written and replace a set of three, in this order.
const std::vector<std::string> kWritingCalls = [] {
  std::vector<std::string> calls;
  for (const std::string name : {"train-00000-of-00002.h5", "train-00001-of-00002.h5"}) {
    const auto temporary = "." + name + ".tmp";
    // Synced by write_shard, and again by rename_durably.
    calls.insert(calls.end(), {"write " + temporary, "fsync " + temporary, "fsync " + temporary,
                               "rename " + temporary + " ." + name + ".waiting", "fsync ."});
  }
  return calls;
}();
const std::vector<std::string> kPublishingCalls = [] {
  std::vector<std::string> calls{"unlink train.manifest.json", "fsync ."};
  for (const auto* name : {"0", "1", "2"})
    calls.push_back(fmt::format("unlink train-0000{}-of-00003.h5", name));
  for (const std::string name : {"train-00000-of-00002.h5", "train-00001-of-00002.h5"})
    calls.insert(calls.end(),
                 {"fsync ." + name + ".waiting", "rename ." + name + ".waiting " + name, "fsync ."});
  const std::string manifest = "train.manifest.json", temporary = "." + manifest + ".tmp";
  calls.insert(calls.end(), {"write " + temporary, "fsync " + temporary, "fsync " + temporary,
                             "rename " + temporary + " " + manifest, "fsync ."});
  return calls;
}();

TEST_F(SetFolderTest, every_file_is_synced_before_it_takes_its_name_and_the_manifest_comes_last) {
  write_made_set(path, made_records(6), {.shard_count = 3});
  const test::DiskCalls calls(path);
  SetFolder folder(path, Split::train);
  auto expected = calls.lines();  // of the lock
  Manifest manifest{Split::train, std::string(32, 'c'), {}, {write_shard(folder, 0), write_shard(folder, 1)}};
  expected.insert(expected.end(), kWritingCalls.begin(), kWritingCalls.end());
  EXPECT_EQ(calls.lines(), expected);
  manifest.set_digest = set_digest_of(manifest).hex();
  folder.publish(manifest.shards, manifest_text(manifest, nlohmann::ordered_json::object()));
  expected.insert(expected.end(), kPublishingCalls.begin(), kPublishingCalls.end());
  auto found = calls.lines();
  // Shards are removed in the order in which the file system lists them.
  for (auto* lines : {&expected, &found}) {
    const auto first =
        lines->begin() + static_cast<std::ptrdiff_t>(lines->size() - kPublishingCalls.size() + 2);
    std::sort(first, first + 3);
  }
  EXPECT_EQ(found, expected);
  EXPECT_TRUE(opens());
}

TEST_F(SetFolderTest, shards_that_wait_again_are_synced_too) {
  write_made_set(path, records);
  fs::remove(path / "train.manifest.json");
  SetFolder folder(path, Split::train);
  const test::DiskCalls calls(path);
  EXPECT_EQ(folder.clean(2), 0U);
  std::vector<std::string> expected;
  for (const auto* name : {"train-00000-of-00002.h5", "train-00001-of-00002.h5"})
    expected.insert(expected.end(),
                    {fmt::format("fsync {}", name), fmt::format("rename {0} .{0}.waiting", name), "fsync ."});
  EXPECT_THAT(calls.lines(), testing::UnorderedElementsAreArray(expected));
}

TEST_F(SetFolderTest, a_run_that_dies_before_any_call_leaves_the_old_set_none_or_the_new_one) {
  const auto write_new_set = [&] {
    SetFolder folder(path, Split::train);
    folder.clean(2);
    Manifest manifest{Split::train, std::string(32, 'c'), {}, {}};
    for (const std::uint32_t index : {0U, 1U}) manifest.shards.push_back(write_shard(folder, index));
    manifest.set_digest = set_digest_of(manifest).hex();
    folder.publish(manifest.shards, manifest_text(manifest, nlohmann::ordered_json::object()));
  };
  const auto identity = [&] {
    return opens() ? read_manifest(path / "train.manifest.json").set_identity : "";
  };
  const std::size_t lock_calls = 1;
  const auto unpublished = lock_calls + kWritingCalls.size(),
             last = unpublished + kPublishingCalls.size() - 1;
  std::size_t number = 0;
  while (true) {
    SCOPED_TRACE(number);
    fs::remove_all(path);
    write_made_set(path, made_records(6), {.shard_count = 3, .identity = std::string(32, 'd')});
    if (!test::die_before_call(number, path, write_new_set)) break;
    EXPECT_EQ(identity(), number <= unpublished ? std::string(32, 'd')
                          : number < last       ? ""
                                                : std::string(32, 'c'));
    write_new_set();
    EXPECT_EQ(identity(), std::string(32, 'c'));
    EXPECT_EQ(names_in(path), kComplete);
    ++number;
  }
  EXPECT_EQ(number, last + 2);  // the last removes the lock
}

TEST_F(SetFolderTest, a_shard_that_could_not_be_written_leaves_nothing) {
  const SetFolder folder(path, Split::train);
  ShardWriter writer({Split::train, 0, 2, std::string(32, 'c'), "{}"}, made_categories());
  writer.add(records[0].record, records[0].jpeg);
  fs::create_directories(folder.temporary_path(0, 2));  // no file can take its name
  EXPECT_THROW(writer.close(folder.temporary_path(0, 2)), Error);
  fs::remove(folder.temporary_path(0, 2));
  EXPECT_EQ(names_in(path), (std::set<std::string>{".train.lock"}));
}

TEST_F(SetFolderTest, a_folder_that_a_living_process_writes_is_refused) {
  fs::create_directories(path);
  const auto child = ::fork();
  if (child == 0) {
    const SetFolder folder(path, Split::train);
    write_text(path / "locked", "");
    ::pause();
  }
  while (!fs::exists(path / "locked")) ::usleep(1000);
  EXPECT_EQ(message_of<Error>([&] { SetFolder(path, Split::train); }),
            fmt::format("'{}': process {} on {} is writing train shards there; wait for it, or end it",
                        path.string(), child, host_name()));
  EXPECT_NO_THROW(SetFolder(path, Split::val));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(path / ".train.lock"));
  EXPECT_NO_THROW(SetFolder(path, Split::train));
  EXPECT_EQ(names_in(path), (std::set<std::string>{"locked"}));
}

TEST_F(SetFolderTest, a_folder_that_cannot_be_made_is_named) {
  write_text(path, "a file");
  EXPECT_EQ(message_of<Error>([&] { SetFolder(path / "x", Split::train); }),
            fmt::format("cannot make folder '{}': Not a directory", (path / "x").string()));
}

}  // namespace
}  // namespace ssd
