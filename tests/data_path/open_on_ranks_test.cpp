// On several ranks: one reads the metadata, all open the shards, all fail together.
#include "data/open_on_ranks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <map>

#include "comm/agreement.hpp"
#include "record/made_set.hpp"
#include "support/files.hpp"
#include "support/world.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

const std::string kFirstShard = "train-00000-of-00002.h5";

// A folder for each rank, as local disks of as many nodes.
class OpenOnRanksTest : public testing::Test {
 protected:
  void SetUp() override { write_made_set(folder.path(), records); }

  // Whether all ranks fail, and rank `speaker` says why.
  void expect_failure(int speaker, const std::string& text) const {
    testing::internal::CaptureStderr();
    int exit_code = 0;
    try {
      open_on_ranks(world, folder.path(), Split::train);
    } catch (const AgreedFailure& failure) {
      exit_code = failure.exit_code;
    }
    const auto said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(exit_code, 1);
    if (world.rank() == speaker)
      EXPECT_THAT(said, testing::HasSubstr(text));
    else
      EXPECT_EQ(said, "");
  }

  int last_rank() const { return world.world_size() - 1; }

  MpiComm world = test::copy_of_world();
  TemporaryFolder folder;
  std::vector<MadeRecord> records = made_records(9);
};

// The file without what other ranks have no need to read.
void leave_pictures_alone(const fs::path& folder) {
  const auto set = ShardSet::open(folder, Split::train);
  std::vector<std::string> kept;
  for (const std::uint32_t shard : {0U, 1U}) {
    const auto path = folder / ("train-0000" + std::to_string(shard) + "-of-00002.h5");
    const auto whole = text_of(path);
    std::string pictures(whole.size(), '\0');
    for (const auto& record : set.records()) {
      if (record.shard != shard) continue;
      pictures.replace(record.byte_offset, record.byte_count, whole, record.byte_offset, record.byte_count);
      const auto restart_bytes = record.restart_count * sizeof(std::uint32_t);
      pictures.replace(record.restart_byte_offset, restart_bytes, whole, record.restart_byte_offset,
                       restart_bytes);
    }
    ASSERT_NE(pictures, whole);
    write_text(path, pictures);
  }
}

TEST_F(OpenOnRanksTest, a_val_set_stays_one) {
  write_made_set(folder.path(), records, {.split = Split::val});
  const auto set = open_on_ranks(world, folder.path(), Split::val);
  EXPECT_EQ(set.split(), Split::val);
  EXPECT_EQ(set.records().size(), records.size());
}

TEST_F(OpenOnRanksTest, other_ranks_have_the_whole_set_without_reading_its_metadata) {
  if (!world.is_root()) leave_pictures_alone(folder.path());
  const auto set = open_on_ranks(world, folder.path(), Split::train);
  EXPECT_EQ(set.folder(), folder.path());
  EXPECT_EQ(set.split(), Split::train);
  ASSERT_EQ(set.categories().size(), made_categories().size());
  for (std::size_t i = 0; i < set.categories().size(); ++i) {
    EXPECT_EQ(set.categories()[i].id, made_categories()[i].id);
    EXPECT_EQ(set.categories()[i].name, made_categories()[i].name);
  }
  const TemporaryFolder again;
  write_made_set(again.path(), records);
  EXPECT_EQ(set.digest(), ShardSet::open(again.path(), Split::train).digest());
  ASSERT_EQ(set.records().size(), records.size());
  for (std::size_t i = 0; i < records.size(); ++i) expect_equal(set, set.records()[i], records[i]);
}

// Opens of files in a folder, by whatever call.
class OpenCounter {
 public:
  explicit OpenCounter(const fs::path& folder)
      : descriptor_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
        watch_(::inotify_add_watch(descriptor_, folder.c_str(), IN_OPEN)) {}
  ~OpenCounter() { ::close(descriptor_); }
  OpenCounter(const OpenCounter&) = delete;
  OpenCounter& operator=(const OpenCounter&) = delete;

  bool works() const { return descriptor_ >= 0 && watch_ >= 0; }

  // Since the last call, by file name.
  std::map<std::string, int> take() {
    std::map<std::string, int> counts;
    alignas(inotify_event) std::array<char, 4096> buffer{};
    for (ssize_t size; (size = ::read(descriptor_, buffer.data(), buffer.size())) > 0;) {
      for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
        const auto* event = reinterpret_cast<const inotify_event*>(&buffer[at]);
        if (event->len > 0) ++counts[event->name];
        at += sizeof(inotify_event) + event->len;
      }
    }
    return counts;
  }

 private:
  int descriptor_;
  int watch_;
};

TEST_F(OpenOnRanksTest, T5_20_other_ranks_open_each_file_once_and_no_more_files_while_they_read) {
  OpenCounter counter(folder.path());
  ASSERT_TRUE(counter.works());
  const auto set = open_on_ranks(world, folder.path(), Split::train);
  const auto opened = counter.take();
  if (!world.is_root()) {
    EXPECT_EQ(opened, (std::map<std::string, int>{{"train.manifest.json", 1},
                                                  {"train-00000-of-00002.h5", 1},
                                                  {"train-00001-of-00002.h5", 1}}));
  } else {
    EXPECT_EQ(opened.at("train-00000-of-00002.h5"), 2);  // by HDF5 for its metadata, and for its pictures
  }
  std::vector<std::byte> jpeg;
  for (const auto& record : set.records()) set.read_jpeg(record, jpeg);
  EXPECT_TRUE(counter.take().empty());
}

TEST_F(OpenOnRanksTest, all_fail_where_rank_0_cannot_read_the_set) {
  if (world.is_root()) fs::remove(folder.path() / kFirstShard);
  expect_failure(0, "missing");
}

TEST_F(OpenOnRanksTest, all_fail_where_the_last_rank_misses_a_shard) {
  if (world.rank() == last_rank()) fs::remove(folder.path() / kFirstShard);
  expect_failure(last_rank(), (folder.path() / kFirstShard).string() + "': missing");
}

TEST_F(OpenOnRanksTest, all_fail_where_a_shard_of_the_last_rank_is_cut_off) {
  const auto path = folder.path() / kFirstShard;
  if (world.rank() == last_rank()) fs::resize_file(path, fs::file_size(path) - 1);
  expect_failure(last_rank(), "cut off");
}

TEST_F(OpenOnRanksTest, all_fail_where_the_last_rank_has_no_folder) {
  if (world.rank() == last_rank()) fs::remove_all(folder.path());
  expect_failure(last_rank(), "no folder '" + folder.path().string() + "'");
}

TEST_F(OpenOnRanksTest, another_set_on_the_last_rank_is_refused) {
  if (world.world_size() == 1) GTEST_SKIP() << "one rank sees one set";
  if (world.rank() == last_rank()) {
    fs::remove_all(folder.path());
    write_made_set(folder.path(), made_records(8));
  }
  expect_failure(last_rank(), "see other train shards");
}

}  // namespace
}  // namespace ssd
