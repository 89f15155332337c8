// Which shard that an earlier run left is taken for one of this set.
#include "preprocess/pack_shard.hpp"

#include <gtest/gtest.h>

#include "record/hdf5.hpp"
#include "record/shard_file.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

const fs::path kBccd = fs::path(SSD_TEST_DATA) / "bccd";

class PackedAlready : public testing::Test {
 protected:
  PackedAlready() {
    plan = plan_of(source);
    EXPECT_EQ(plan.shard_count(), 2U);
    for (const std::uint32_t shard : {0U, 1U})
      EXPECT_TRUE(pack_shard(work(source, plan), shard, WriteShard::yes, paths[shard]).empty());
  }
  static PackPlan plan_of(const SourceSet& set) {
    PackOptions options;
    options.limit = 6;
    auto plan = make_plan(set, measure_files(set, 1, MpiComm()), options);
    plan.first_images = {0, 3, 6};
    return plan;
  }
  ShardWork work(const SourceSet& set, const PackPlan& planned) const {
    return {set, planned, 1, [this] { ++advanced; }};
  }
  bool is_packed(const SourceSet& set, const PackPlan& planned, std::uint32_t shard = 0) const {
    std::vector<ImageProblem> problems;
    const bool is_packed = is_packed_already(work(set, planned), shard, paths[shard], problems);
    EXPECT_TRUE(problems.empty());
    return is_packed;
  }
  bool is_packed() const { return is_packed(source, plan); }

  TemporaryFolder folder;
  fs::path paths[2] = {folder.path() / "0.h5", folder.path() / "1.h5"};
  SourceSet source = read_source_set(
      {Split::val, kBccd / "coco/instances_val.json", kBccd / "JPEGImages", std::nullopt}, MpiComm());
  PackPlan plan;
  mutable int advanced = 0;
};

TEST_F(PackedAlready, is_what_was_packed_from_the_same_input) {
  EXPECT_EQ(advanced, 6);
  EXPECT_TRUE(is_packed(source, plan, 0));
  EXPECT_TRUE(is_packed(source, plan, 1));
  EXPECT_EQ(advanced, 12);
  fs::remove(paths[0]);
  EXPECT_FALSE(is_packed());
  EXPECT_EQ(advanced, 12);
}

TEST_F(PackedAlready, is_not_a_shard_of_other_boxes_over_the_same_pictures) {
  auto other = source;
  other.set.annotations[0].bbox_xywh[2] += 1;
  EXPECT_FALSE(is_packed(other, plan_of(other)));
}

// Of the same identity and pictures; one field of the header is another.
TEST_F(PackedAlready, is_not_a_shard_of_another_header) {
  auto other = plan;
  other.first_images = {0, 3};  // the count
  EXPECT_FALSE(is_packed(source, other));
  other = plan;
  other.options.skip_bad = true;
  EXPECT_FALSE(is_packed(source, other));
  other = plan;
  other.identity = std::string(32, '0');
  EXPECT_FALSE(is_packed(source, other));
  auto train = source;
  train.source.split = Split::train;
  EXPECT_FALSE(is_packed(train, plan));
  other = plan;
  std::copy_n(other.images.begin(), 3, other.images.begin() + 3);  // both of the same pictures
  fs::copy_file(paths[0], paths[1], fs::copy_options::overwrite_existing);
  EXPECT_FALSE(is_packed(source, other, 1));
  EXPECT_TRUE(is_packed());
}

TEST_F(PackedAlready, is_not_a_damaged_one) {
  const auto good = text_of(paths[0]);
  const auto shard = read_shard(paths[0]);
  for (const auto at : {hdf5_data_offset(open_hdf5_file(paths[0]), "annotations/bbox_xywh"),
                        shard.jpeg_data_offset + shard.data.jpeg_offsets[1],
                        shard.jpeg_data_offset + shard.data.jpeg_offsets[2] + shard.data.jpeg_bytes[2] - 1}) {
    auto text = good;
    text[at] ^= 1;
    write_text(paths[0], text);
    EXPECT_FALSE(is_packed()) << at;
  }
  write_text(paths[0], good);
  EXPECT_TRUE(is_packed());
}

}  // namespace
}  // namespace ssd
