// Files that are written over what is there already, as users name them: links, devices, FIFOs, files with
// modes.
#include "core/atomic_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class AtomicFileOver : public testing::Test {
 protected:
  static struct stat status_of(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status;
  }
  std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder.path()), {}));
  }
  TemporaryFolder folder;
  fs::path path = folder.path() / "x";
};

TEST_F(AtomicFileOver, U3_a_file_keeps_its_mode_and_owner) {
  write_text(path, "old");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 12345, 54321), 0);
  }
  const auto before = status_of(path);
  write_file_atomically(path, "new");
  const auto after = status_of(path);
  EXPECT_EQ(text_of(path), "new");
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_uid, before.st_uid);
  EXPECT_EQ(after.st_gid, before.st_gid);
  EXPECT_EQ(file_count(), 1U);
}

TEST_F(AtomicFileOver, U3_a_new_file_has_the_mode_of_the_umask) {
  const auto old = ::umask(027);
  write_file_atomically(path, "new");
  ::umask(old);
  EXPECT_EQ(status_of(path).st_mode & 0777, 0640U);
}

TEST_F(AtomicFileOver, U3_a_link_stays_and_its_target_is_replaced) {
  fs::create_directory(folder.path() / "there");
  write_text(folder.path() / "there/target", "old");
  fs::create_symlink("there/target", path);
  fs::create_symlink(path, folder.path() / "y");
  write_file_atomically(folder.path() / "y", "new");
  EXPECT_EQ(fs::read_symlink(path), "there/target");
  EXPECT_EQ(fs::read_symlink(folder.path() / "y"), path);
  EXPECT_EQ(text_of(folder.path() / "there/target"), "new");
  // One that leads nowhere yet.
  fs::create_symlink("there/later", folder.path() / "z");
  write_file_atomically(folder.path() / "z", "made");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "z"));
  EXPECT_EQ(text_of(folder.path() / "there/later"), "made");
}

TEST_F(AtomicFileOver, U3_a_device_and_a_fifo_are_written_to) {
  write_file_atomically("/dev/null", "gone");
  EXPECT_TRUE(S_ISCHR(status_of("/dev/null").st_mode));
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = text_of(path); });
  write_file_atomically(path, "through");
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(S_ISFIFO(status_of(path).st_mode));
  EXPECT_EQ(file_count(), 1U);
}

TEST_F(AtomicFileOver, U3_links_in_a_circle_are_an_error) {
  fs::create_symlink("x", folder.path() / "y");
  fs::create_symlink("y", path);
  EXPECT_THAT(message_of<Error>([&] { write_file_atomically(path, ""); }), HasSubstr("symbolic links"));
}

TEST_F(AtomicFileOver, U10_a_path_that_cannot_be_written_is_told_before_anything_is_made) {
  const auto complaint = [](const fs::path& output) {
    return message_of<Error>([&] { validate_output_path(output); });
  };
  EXPECT_EQ(complaint(folder.path() / "missing/x.json"),
            "cannot write '" + (folder.path() / "missing/x.json").string() + "': no folder '" +
                (folder.path() / "missing").string() + "'; make it first");
  EXPECT_THAT(complaint(folder.path()), HasSubstr("Is a directory"));
  EXPECT_THAT(complaint(folder.path() / ""), HasSubstr("not the name of a file"));
  write_text(folder.path() / "file", "");
  EXPECT_THAT(complaint(folder.path() / "file/x"), HasSubstr("Not a directory"));
  EXPECT_NO_THROW(validate_output_path(path));
  EXPECT_NO_THROW(validate_output_path("x.json"));
  EXPECT_NO_THROW(validate_output_path("/dev/null"));
  EXPECT_NO_THROW(validate_output_path("/dev/stdout"));
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_NO_THROW(validate_output_path(path));  // and does not wait for a reader
  EXPECT_EQ(file_count(), 2U);
}

}  // namespace
}  // namespace ssd
