#include "record/set_metadata.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "record/made_set.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

class SetMetadataTest : public testing::Test {
 protected:
  SetMetadataTest() { write_made_set(folder.path(), made_records(7), {.split = Split::val}); }

  TemporaryFolder folder;
};

TEST_F(SetMetadataTest, leaves_out_where_restart_segments_begin) {
  for (const auto& shard : read_set_metadata(folder.path(), Split::val).shards) {
    EXPECT_EQ(shard.data.restart_offsets.capacity(), 0U);
    EXPECT_GT(shard.data.first_restarts.back(), 0U);
  }
}

TEST_F(SetMetadataTest, comes_back_from_bytes_as_it_was) {
  const auto metadata = read_set_metadata(folder.path(), Split::val);
  const auto copy = set_metadata_of(to_bytes(metadata));
  EXPECT_EQ(copy.manifest.split, Split::val);
  EXPECT_EQ(copy.manifest.set_identity, metadata.manifest.set_identity);
  EXPECT_EQ(copy.manifest.set_digest, metadata.manifest.set_digest);
  ASSERT_EQ(copy.manifest.shards.size(), 2U);
  ASSERT_EQ(copy.shards.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(copy.manifest.shards[i].file_name, metadata.manifest.shards[i].file_name);
    EXPECT_EQ(copy.manifest.shards[i].file_bytes, metadata.manifest.shards[i].file_bytes);
    const auto &was = metadata.shards[i], &is = copy.shards[i];
    EXPECT_EQ(is.header.index, was.header.index);
    EXPECT_EQ(is.jpeg_data_offset, was.jpeg_data_offset);
    EXPECT_EQ(is.restart_data_offset, was.restart_data_offset);
    EXPECT_EQ(content_digest({}, is.data), content_digest({}, was.data));  // covers every dataset
  }
}

TEST_F(SetMetadataTest, bytes_that_are_cut_off_or_too_many_are_refused) {
  auto bytes = to_bytes(read_set_metadata(folder.path(), Split::val));
  for (std::size_t size = 0; size < bytes.size(); size += 13)
    EXPECT_THROW(set_metadata_of(std::span(bytes).first(size)), ContractError) << size;
  bytes.push_back({});
  EXPECT_THROW(set_metadata_of(bytes), ContractError);
}

}  // namespace
}  // namespace ssd
