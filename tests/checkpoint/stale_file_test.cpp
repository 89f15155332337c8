// ESTALE, as NFS gives it for a file that was replaced: this program's own pread stands in front of the
// system's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "checkpoint/checkpoint.hpp"
#include "core/error.hpp"
#include "support/files.hpp"

namespace {
int stale_reads = 0;  // so many calls of pread fail
}

extern "C" ssize_t pread(int descriptor, void* buffer, size_t bytes, off_t offset) {
  if (stale_reads > 0) {
    --stale_reads;
    errno = ESTALE;
    return -1;
  }
  return ::syscall(SYS_pread64, descriptor, buffer, bytes, offset);
}

namespace ssd {
namespace {

TEST(StaleFile, T5_22_is_opened_again_twice_and_then_given_up) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "epoch_0.pt";
  write_checkpoint_file(path, "contents");
  stale_reads = 2;
  EXPECT_EQ(*read_checkpoint_file(path).value().get_if<std::string>(), "contents");
  EXPECT_EQ(stale_reads, 0);
  stale_reads = 3;
  EXPECT_EQ(message_of<Error>([&] { read_checkpoint_file(path); }),
            "cannot read '" + path.string() + "': Stale file handle");
}

TEST(ReadCheckpointFile, names_a_path_that_is_no_file) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of<Error>([&] { read_checkpoint_file(folder.path() / "none.pt"); }),
            "cannot open '" + (folder.path() / "none.pt").string() + "': No such file or directory");
  EXPECT_EQ(message_of<Error>([&] { read_checkpoint_file(folder.path()); }),
            "cannot read '" + folder.path().string() + "': it is not a regular file");
}

}  // namespace
}  // namespace ssd
