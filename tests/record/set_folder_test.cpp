// What a run that dies leaves behind, and what the next one makes of it.
#include "record/set_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <set>

#include "core/atomic_file.hpp"
#include "core/error.hpp"
#include "record/made_set.hpp"
#include "record/shard_set.hpp"
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
  ShardSummary write_shard(SetFolder& folder, std::uint32_t index) const {
    ShardWriter writer({Split::train, index, 2, std::string(32, 'c'), "{}"}, made_categories());
    writer.add(records[index].record, records[index].jpeg);
    return writer.close(folder.temporary_path(index, 2));
  }

  std::vector<MadeRecord> records = made_records(2);
  TemporaryFolder temporary;
  fs::path path = temporary.path() / "set";
};

TEST_F(SetFolderTest, a_run_that_dies_leaves_nothing_that_opens_and_the_next_one_cleans_it) {
  const std::vector<std::function<void()>> deaths{
      [&] {  // while shards are written
        auto* folder = new SetFolder(path, Split::train);
        write_shard(*folder, 0);
      },
      [&] {  // in the middle of publishing
        auto* folder = new SetFolder(path, Split::train);
        const auto first = write_shard(*folder, 0);
        write_shard(*folder, 1);
        rename_durably(temporary_path_for(path / first.file_name), path / first.file_name);
      },
      [&] {  // while the manifest is written
        write_made_set(path, records);
        write_text(temporary_path_for(path / "train.manifest.json"), "{}");
        fs::remove(path / "train.manifest.json");
      }};
  for (std::size_t i = 0; i < deaths.size(); ++i) {
    SCOPED_TRACE(i);
    die_after(deaths[i]);
    EXPECT_FALSE(names_in(path).empty());
    EXPECT_FALSE(opens());
    {
      SetFolder folder(path, Split::train);
      EXPECT_EQ(folder.existing(std::string(32, 'c')), ExistingSet::none);
      EXPECT_GT(folder.remove_leftovers(), 0U);
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
  SetFolder folder(path, Split::train);
  EXPECT_EQ(folder.remove_leftovers(), 1U);
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

TEST_F(SetFolderTest, unpublished_files_go_with_the_object) {
  {
    SetFolder folder(path, Split::train);
    write_shard(folder, 0);
    EXPECT_EQ(names_in(path).size(), 1U);
  }
  EXPECT_TRUE(names_in(path).empty());
}

TEST_F(SetFolderTest, a_folder_that_a_living_process_writes_is_refused) {
  fs::create_directories(path);
  const auto child = ::fork();
  if (child == 0) {
    write_text(temporary_path_for(path / "train-00000-of-00002.h5"), "x");
    ::pause();
  }
  while (fs::is_empty(path)) ::usleep(1000);
  const auto message = message_of<Error>([&] { SetFolder(path, Split::train); });
  EXPECT_THAT(message, testing::StartsWith(fmt::format("'{}': process {} is writing train shards there",
                                                       path.string(), child)));
  EXPECT_NO_THROW(SetFolder(path, Split::val));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_NO_THROW(SetFolder(path, Split::train));
}

TEST_F(SetFolderTest, a_folder_that_cannot_be_made_is_named) {
  write_text(path, "a file");
  EXPECT_EQ(message_of<Error>([&] { SetFolder(path / "x", Split::train); }),
            fmt::format("cannot make folder '{}': Not a directory", (path / "x").string()));
}

}  // namespace
}  // namespace ssd
