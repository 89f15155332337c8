// A picture that changes while it is read: this program's own read stands in front of the system's.
#include "preprocess/check_image.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>

#include "core/error.hpp"
#include "support/files.hpp"

namespace {

ssize_t system_read(int descriptor, void* buffer, size_t count) {
  return ::syscall(SYS_read, descriptor, buffer, count);
}

// Called with the number of the read, from 0, before and after it.
std::function<void(int)> before_read, after_read;
int reads = 0;

}  // namespace

extern "C" ssize_t read(int descriptor, void* buffer, size_t count) {
  if (before_read) before_read(reads);
  const auto got = system_read(descriptor, buffer, count);
  if (after_read) after_read(reads);
  ++reads;
  return got;
}

namespace ssd {
namespace {

namespace fs = std::filesystem;

class ChangingImage : public testing::Test {
 protected:
  ChangingImage() {
    fs::copy_file(fs::path(SSD_TEST_DATA) / "jpeg_nasty/ok/hopper.jpg", path);
    size = static_cast<off_t>(fs::file_size(path));
    const auto picture = ImageChecker().check(entry, folder.path(), StoredJpeg::original);
    EXPECT_EQ(picture.problem, ImageProblemKind::none) << picture.problem_text;
    data.source_bytes = {picture.record.source_bytes};
    data.source_digests = {{picture.record.source_digest.high, picture.record.source_digest.low}};
    EXPECT_TRUE(is_source_of(data, 0, path));
  }
  struct timespec time() const {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mtim;
  }
  void set_time(const struct timespec& time) const {
    const struct timespec times[2]{time, time};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  void append_byte() const { std::ofstream(path, std::ios::app) << 'x'; }

  // Whether both readers notice what happens at the reads of the file.
  void expect_noticed(const std::function<void(int)>& before, const std::function<void(int)>& after) {
    const auto original = text_of(path);
    const auto with_changes = [&](const auto& work) {
      reads = 0;
      before_read = before;
      after_read = after;
      const auto result = work();
      before_read = after_read = nullptr;
      write_text(path, original);
      return result;
    };
    EXPECT_EQ(
        with_changes([&] {
          return message_of<Error>([&] { ImageChecker().check(entry, folder.path(), StoredJpeg::original); });
        }),
        fmt::format("'{}' (image 5): changed while it was read; run ssd_preprocess again when nothing "
                    "writes there",
                    path.string()));
    EXPECT_FALSE(with_changes([&] { return is_source_of(data, 0, path); }));
  }

  TemporaryFolder folder;
  fs::path path = folder.path() / "a.jpg";
  ImageEntry entry{ImageId(5), "a.jpg", 128, 128};
  off_t size = 0;
  ShardData data;
};

TEST_F(ChangingImage, is_told_from_another_by_its_size_and_all_of_its_digest) {
  for (const int changed : {0, 1, 2}) {
    auto other = data;
    other.source_bytes[0] += changed == 0;
    other.source_digests[0][0] ^= changed == 1;
    other.source_digests[0][1] ^= changed == 2;
    EXPECT_FALSE(is_source_of(other, 0, path)) << changed;
  }
  EXPECT_TRUE(is_source_of(data, 0, path));
  fs::remove(path);
  EXPECT_FALSE(is_source_of(data, 0, path));
}

TEST_F(ChangingImage, that_grows_is_noticed) {
  expect_noticed(nullptr, [&](int) { append_byte(); });
}

TEST_F(ChangingImage, that_grows_at_the_same_time_stamp_is_noticed) {
  expect_noticed(nullptr, [&](int) {
    const auto before = time();
    append_byte();
    set_time(before);
  });
}

TEST_F(ChangingImage, whose_time_changes_by_a_second_or_a_nanosecond_is_noticed) {
  expect_noticed(nullptr, [&](int) {
    auto changed = time();
    ++changed.tv_sec;
    set_time(changed);
  });
  expect_noticed(nullptr, [&](int) {
    auto changed = time();
    changed.tv_nsec = changed.tv_nsec == 0 ? 1 : changed.tv_nsec - 1;
    set_time(changed);
  });
}

// Cut off while it is read, and whole again with its old time when that is over.
TEST_F(ChangingImage, that_was_shorter_meanwhile_is_noticed) {
  struct timespec old {};
  expect_noticed(
      [&](int number) {
        if (number != 0) return;
        old = time();
        EXPECT_EQ(::truncate(path.c_str(), size - 100), 0);
      },
      [&](int number) {
        if (number != 1) return;
        EXPECT_EQ(::truncate(path.c_str(), size), 0);
        set_time(old);
      });
}

}  // namespace
}  // namespace ssd
