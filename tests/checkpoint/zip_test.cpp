// The archive: what the small files do not show.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "checkpoint/byte_source.hpp"
#include "checkpoint/zip_reader.hpp"
#include "checkpoint/zip_writer.hpp"
#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out;
  ZipWriter writer([&](std::span<const std::byte> piece) {
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  for (const auto& [name, text] : entries) writer.add(name, text);
  writer.finish();
  return out;
}

std::string error_of(const std::string& archive) {
  const MemorySource source(std::as_bytes(std::span(archive)));
  return message_of<Error>([&] { ZipReader reader(source); });
}

TEST(Zip, entries_read_again) {
  const auto archive = zip_of({{"a/one", "first"}, {"a/empty", ""}, {"a/two", std::string(1000, 'x')}});
  const MemorySource source(std::as_bytes(std::span(archive)));
  const ZipReader reader(source);
  EXPECT_EQ(reader.entries().size(), 3U);
  EXPECT_EQ(reader.read("a/two").size(), 1000U);
  EXPECT_TRUE(reader.read("a/empty").empty());
  EXPECT_THAT(message_of<Error>([&] { reader.read("a/three"); }), testing::HasSubstr("'a/three' is missing"));
}

TEST(Zip, an_archive_without_its_end_is_refused) {
  std::string out;
  ZipWriter writer([&](std::span<const std::byte> piece) {
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  writer.add("a/one", "first");
  EXPECT_THAT(error_of(out), testing::HasSubstr("does not end with its directory"));
}

TEST(Zip, a_name_is_added_once_and_nothing_after_the_end) {
  ZipWriter writer([](std::span<const std::byte>) {});
  writer.add("a", "");
  EXPECT_THROW(writer.add("a", ""), ContractError);
  writer.finish();
  EXPECT_THROW(writer.add("b", ""), ContractError);
}

TEST(Zip, what_the_sink_throws_reaches_the_caller) {
  ZipWriter writer([](std::span<const std::byte>) { throw Error("the disk is full"); });
  EXPECT_EQ(message_of<Error>([&] { writer.add("a", "x"); }), "the disk is full");
}

// Two entries of the directory that point to the same bytes: with each number right on its own.
TEST(Zip, overlapping_entries_are_refused) {
  auto archive = zip_of({{"a/1", "same"}, {"a/2", "same"}});
  const auto second = archive.rfind("a/2");
  const std::string offset_of_first(8, '\0');
  archive.replace(second + 3 + 4 + 16, 8, offset_of_first);
  EXPECT_THAT(error_of(archive), testing::HasSubstr("overlaps another"));
}

TEST(Zip, a_comment_or_data_behind_the_end_is_refused) {
  auto archive = zip_of({{"a/1", "x"}});
  EXPECT_NE(error_of(archive + "x").find("does not end with its directory"), std::string::npos);
  archive[archive.size() - 2] = 1;  // the length of a comment
  EXPECT_NE(error_of(archive + "x").find("does not end with its directory"), std::string::npos);
}

// Over 4 GiB of zeros, written as a hole of a sparse file.
TEST(Zip, archives_beyond_4_GiB_read_again) {
  const char* long_form = std::getenv("SSD_TEST_LONG");
  if (long_form == nullptr || std::string(long_form) != "1") GTEST_SKIP() << "set SSD_TEST_LONG=1 to run it";
  constexpr std::size_t kLarge = (std::size_t{1} << 32) + 1000;
  void* zeros = ::mmap(nullptr, kLarge, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  const TemporaryFolder folder;
  const auto path = folder.path() / "large.zip";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0666);
  ZipWriter writer([&](std::span<const std::byte> piece) {
    if (piece.size() == kLarge) {
      ::lseek(file, static_cast<off_t>(kLarge), SEEK_CUR);
    } else {
      ASSERT_EQ(::write(file, piece.data(), piece.size()), static_cast<ssize_t>(piece.size()));
    }
  });
  writer.add("a/large", std::span(static_cast<const std::byte*>(zeros), kLarge));
  writer.add("a/after", "text");
  writer.finish();
  ::close(file);
  ::munmap(zeros, kLarge);

  const FileSource source(path);
  const ZipReader reader(source);
  EXPECT_EQ(reader.find("a/large")->bytes, kLarge);
  EXPECT_GT(reader.find("a/after")->data_offset, kLarge);
  EXPECT_EQ(reader.read("a/after").size(), 4U);
}

}  // namespace
}  // namespace ssd
