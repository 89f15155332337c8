#include "record/file_names.hpp"

#include <gtest/gtest.h>

namespace ssd {
namespace {

TEST(FileNames, are_made_and_parsed_alike) {
  const ShardName name{Split::val, 3, 12};
  EXPECT_EQ(shard_file_name(name), "val-00003-of-00012.h5");
  EXPECT_EQ(parse_shard_file_name("val-00003-of-00012.h5"), name);
  EXPECT_EQ(parse_shard_file_name("train-00000-of-00001.h5"), (ShardName{Split::train, 0, 1}));
  EXPECT_EQ(manifest_file_name(Split::train), "train.manifest.json");
  EXPECT_EQ(waiting_file_name(name), ".val-00003-of-00012.h5.waiting");
  EXPECT_EQ(parse_waiting_file_name(".val-00003-of-00012.h5.waiting"), name);
  EXPECT_EQ(lock_file_name(Split::val), ".val.lock");
}

TEST(FileNames, of_other_files_are_not_taken_for_shards) {
  for (const auto* name : {"", "train", "train-", "train-00000-of-00001", "train-00000-of-00001.h5x",
                           "train-0000-of-00001.h5", "train-00001-of-00001.h5", "test-00000-of-00001.h5",
                           ".train-00000-of-00001.h5.tmp.host.1", "train-000a0-of-00001.h5",
                           "train--0001-of-00001.h5", "train-00000-of-00000.h5", "train.manifest.json"})
    EXPECT_FALSE(parse_shard_file_name(name)) << name;
  for (const auto* name : {"", ".waiting", "val-00003-of-00012.h5.waiting", ".val-00003-of-00012.h5",
                           ".val-00003-of-00012.waiting", ".train.lock"})
    EXPECT_FALSE(parse_waiting_file_name(name)) << name;
}

}  // namespace
}  // namespace ssd
