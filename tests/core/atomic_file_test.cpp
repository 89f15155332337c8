// What reaches the disk, in which order, and what is left where it fails or the process dies in between.
#include "core/atomic_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "support/die_before_call.hpp"
#include "support/disk_calls.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using test::DiskCalls;
using test::Spoil;
using testing::ElementsAre;

class AtomicFileOnDisk : public testing::Test {
 protected:
  AtomicFileOnDisk() { write_text(path, "old"); }
  // What writing "new" throws where the call of this number is spoilt.
  std::string message_where(std::size_t number, Spoil how) const {
    DiskCalls calls(folder.path());
    calls.spoil_number(number, how);
    return message_of<Error>([&] { write_file_atomically(path, "new"); });
  }
  std::ptrdiff_t file_count() const { return std::distance(fs::directory_iterator(folder.path()), {}); }

  TemporaryFolder folder;
  fs::path path = folder.path() / "a.txt";
};

// The file is synced through the descriptor that wrote it, which learns of an error that came earlier, and
// again by rename_durably.
const std::vector<std::string> kCalls{"write .a.txt.tmp", "fsync .a.txt.tmp", "fsync .a.txt.tmp",
                                      "rename .a.txt.tmp a.txt", "fsync ."};

TEST_F(AtomicFileOnDisk, is_synced_before_it_takes_its_name_and_its_folder_after) {
  {
    DiskCalls calls(folder.path());
    write_file_atomically(path, "new");
    EXPECT_EQ(calls.lines(), kCalls);
  }
  const auto before = fs::current_path();
  fs::current_path(folder.path());
  {
    DiskCalls calls(folder.path());
    write_file_atomically("a.txt", "newer");  // a path without a folder
    EXPECT_EQ(calls.lines(), kCalls);
  }
  fs::current_path(before);
  EXPECT_EQ(text_of(path), "newer");
}

TEST_F(AtomicFileOnDisk, a_finished_file_is_synced_renamed_and_its_folder_synced) {
  write_text(folder.path() / "b", "finished");
  DiskCalls calls(folder.path());
  rename_durably(folder.path() / "b", path);
  EXPECT_THAT(calls.lines(), ElementsAre("fsync b", "rename b a.txt", "fsync ."));
}

TEST_F(AtomicFileOnDisk, a_call_that_fails_is_told_and_before_the_rename_the_old_file_stays) {
  const auto temporary = temporary_path_for(path).string();
  const std::vector<std::string> expected{"cannot write '" + path.string(), "cannot sync '" + path.string(),
                                          "cannot sync '" + temporary, "cannot rename to '" + path.string(),
                                          "cannot sync '" + folder.path().string()};
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    EXPECT_EQ(message_where(i, Spoil::fail), expected[i] + "': Input/output error");
    EXPECT_EQ(text_of(path), i < kCalls.size() - 1 ? "old" : "new");
    EXPECT_EQ(file_count(), 1) << kCalls[i];
  }
}

TEST_F(AtomicFileOnDisk, a_folder_that_cannot_be_synced_at_all_is_no_error) {
  EXPECT_EQ(message_where(4, Spoil::fail_as_invalid), "(nothing was thrown)");
  EXPECT_EQ(text_of(path), "new");
}

TEST_F(AtomicFileOnDisk, a_process_that_dies_before_any_call_leaves_the_old_file_or_the_new_one) {
  std::size_t number = 0;
  for (; test::die_before_call(number, folder.path(), [&] { write_file_atomically(path, "new"); }); ++number)
    EXPECT_EQ(text_of(path), number < kCalls.size() - 1 ? "old" : "new") << kCalls.at(number);
  EXPECT_EQ(number, kCalls.size());
  EXPECT_EQ(text_of(path), "new");
}

TEST_F(AtomicFileOnDisk, is_written_once) {
  AtomicFile file(path);
  file.commit();
  EXPECT_THROW(file.commit(), ContractError);
  EXPECT_THROW(file.write({}), ContractError);
}

}  // namespace
}  // namespace ssd
