// What the options of the set change, and what the numbers of threads and ranks do not.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "preprocess/pack_plan.hpp"
#include "preprocess/pack_runs.hpp"
#include "record/shard_set.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using namespace test;
using testing::HasSubstr;

class PackOptionsTest : public testing::Test {
 protected:
  // The images' ids in the order of the records.
  std::vector<std::int64_t> ids_of(const fs::path& folder, Split split = Split::val) const {
    std::vector<std::int64_t> ids;
    const auto set = ShardSet::open(folder, split);
    for (const auto& record : set.records()) ids.push_back(record.image_id.value());
    return ids;
  }
  std::vector<std::int64_t> packed_ids(const std::string& name,
                                       const std::vector<std::string>& options) const {
    const auto result = preprocess(bccd("val", temporary.path() / name) + options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return ids_of(temporary.path() / name);
  }

  TemporaryFolder temporary;
};

TEST_F(PackOptionsTest, shards_are_the_same_bytes_for_any_number_of_ranks_and_threads) {
  const std::vector<std::string> options{"--shard-size", "300kB", "--shuffle-seed", "3"};
  const auto alone = temporary.path() / "alone";
  ASSERT_EQ(preprocess(bccd("val", alone) + options + std::vector<std::string>{"--threads", "1"}).exit_code,
            0);
  const auto expected = files_of(alone);
  EXPECT_EQ(expected.size(), 8U);  // 7 shards and the manifest
  for (const int ranks : {2, 3}) {
    const auto out = temporary.path() / fmt::format("on_{}", ranks);
    const auto result =
        preprocess_on_ranks(ranks, bccd("val", out) + options + std::vector<std::string>{"--threads", "2"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(files_of(out) == expected) << ranks;
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 10) << result.out;
  }
}

TEST_F(PackOptionsTest, problems_are_listed_alike_for_any_number_of_ranks) {
  const auto images = temporary.path() / "images";
  fs::copy(kBccd / "JPEGImages", images);
  const auto set = nlohmann::json::parse(text_of(kBccd / "coco/instances_val.json"));
  // In shards 0, 1, 3 and 4, so that of three ranks the first two have two each.
  for (const std::size_t i : {3, 20, 50, 65})
    fs::resize_file(images / set["images"][i]["file_name"].get<std::string>(), i == 65 ? 0 : 9000);
  const std::vector<std::string> options{"--shard-size", "300kB", "--threads", "1"};
  const auto out = temporary.path() / "out";
  const auto alone = preprocess(bccd("val", out, images) + options);
  const auto together = preprocess_on_ranks(3, bccd("val", out, images) + options);
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_EQ(together.exit_code, 1);
  EXPECT_THAT(alone.err, HasSubstr("val: 3 images that are cut off:\n"));
  EXPECT_THAT(alone.err, HasSubstr("error: val: 4 problems in the input, listed above"));
  EXPECT_THAT(together.err, HasSubstr(alone.err.substr(0, alone.err.find("error: "))));
  EXPECT_THAT(together.err, HasSubstr("error: val: 4 problems in the input, listed above"));
  EXPECT_TRUE(fs::is_empty(out));
}

TEST_F(PackOptionsTest, a_set_that_leaves_out_bad_pictures_is_the_same_bytes_for_any_number_of_ranks) {
  const auto images = temporary.path() / "images";
  fs::copy(kBccd / "JPEGImages", images);
  const auto set = nlohmann::json::parse(text_of(kBccd / "coco/instances_train.json"));
  std::vector<std::int64_t> ids;
  for (const std::size_t i : {3, 20, 50, 65}) {
    fs::resize_file(images / set["images"][i]["file_name"].get<std::string>(), i == 50 ? 0 : 9000);
    ids.push_back(set["images"][i]["id"].get<std::int64_t>());
  }
  const std::vector<std::string> options{"--shard-size", "300kB", "--threads", "1",
                                         "--limit",      "80",    "--skip-bad"};
  const auto alone = temporary.path() / "alone";
  ASSERT_EQ(preprocess(bccd("train", alone, images) + options).exit_code, 0);
  const auto manifest = nlohmann::json::parse(text_of(alone / "train.manifest.json"));
  std::vector<std::int64_t> left_out;
  for (const auto& entry : manifest["left_out"]) left_out.push_back(entry["image_id"].get<std::int64_t>());
  EXPECT_EQ(left_out, ids);
  for (const int ranks : {2, 3}) {
    const auto out = temporary.path() / fmt::format("on_{}", ranks);
    ASSERT_EQ(preprocess_on_ranks(ranks, bccd("train", out, images) + options).exit_code, 0);
    EXPECT_TRUE(files_of(out) == files_of(alone)) << ranks;
  }
}

TEST_F(PackOptionsTest, originals_are_kept_where_that_is_asked_for) {
  const auto out = temporary.path() / "out";
  const auto result = preprocess({"--keep-original-jpeg", (kData / "coco_free").string(), out.string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("          7 images stored as they are: 709.8 kB\n"));
  const auto set = ShardSet::open(out, Split::train);
  std::vector<std::byte> buffer;
  for (const auto& record : set.records()) {
    EXPECT_TRUE(std::ranges::equal(set.read_jpeg(record, buffer),
                                   bytes_of(kData / "coco_free/train2017" / record.file_name)))
        << record.file_name;
    EXPECT_EQ(record.restart_interval, 0U);
  }
  // Another set than the one with new encodings.
  EXPECT_THAT(preprocess({(kData / "coco_free").string(), out.string()}).err,
              HasSubstr("holds other train shards, made from another input or with other options"));
}

TEST_F(PackOptionsTest, a_seed_shuffles_once_and_the_limit_takes_the_head_of_that_order) {
  const auto plain = packed_ids("plain", {});
  const auto shuffled = packed_ids("shuffled", {"--shuffle-seed", "1"});
  EXPECT_NE(shuffled, plain);
  EXPECT_EQ(std::multiset(shuffled.begin(), shuffled.end()), std::multiset(plain.begin(), plain.end()));
  EXPECT_EQ(packed_ids("again", {"--shuffle-seed", "1"}), shuffled);
  EXPECT_NE(packed_ids("other", {"--shuffle-seed", "2"}), shuffled);
  EXPECT_EQ(packed_ids("limited", {"--shuffle-seed", "1", "--limit", "10"}),
            (std::vector(shuffled.begin(), shuffled.begin() + 10)));
  EXPECT_EQ(packed_ids("first", {"--limit", "1"}), std::vector{plain[0]});
  EXPECT_EQ(packed_ids("all", {"--limit", "1000"}), plain);
  // Records keep their annotations and their place in the JSON.
  const auto a = ShardSet::open(temporary.path() / "plain", Split::val);
  const auto b = ShardSet::open(temporary.path() / "shuffled", Split::val);
  for (const auto& record : b.records()) {
    const auto same = std::find_if(a.records().begin(), a.records().end(),
                                   [&](const Record& other) { return other.image_id == record.image_id; });
    ASSERT_EQ(a.annotations_of(*same).size(), b.annotations_of(record).size());
    for (std::size_t k = 0; k < record.annotation_count; ++k)
      EXPECT_EQ(a.annotations_of(*same)[k].json_order, b.annotations_of(record)[k].json_order);
  }
}

// Images of the same class one after the other, as an annotation file may list them.
TEST_F(PackOptionsTest, each_shard_of_a_shuffled_set_is_a_fair_sample) {
  SourceSet source;
  source.set.categories.push_back({CategoryId(1), "a"});
  for (int i = 0; i < 1000; ++i) source.set.images.push_back({ImageId(i), "x.jpg", 1, 1});
  PackOptions options;
  options.shard_bytes = 100 * 100;
  options.shuffle_seed = 7;
  const auto plan = make_plan(source, std::vector<std::uint64_t>(1000, 100), options);
  ASSERT_EQ(plan.shard_count(), 10U);
  for (std::size_t shard = 0; shard < 10; ++shard) {
    const auto low =
        std::count_if(plan.images.begin() + static_cast<std::ptrdiff_t>(plan.first_images[shard]),
                      plan.images.begin() + static_cast<std::ptrdiff_t>(plan.first_images[shard + 1]),
                      [](std::size_t place) { return place < 500; });
    // Of 100 drawn from 1000 without putting back, half of them low: deviation sqrt(25 * 900 / 999) = 4.7.
    EXPECT_NEAR(static_cast<double>(low), 50, 4 * 4.75) << shard;
  }
}

TEST(PackPlan, fills_shards_by_the_sizes_of_files_and_gives_every_image_one) {
  SourceSet source;
  for (int i = 0; i < 6; ++i) source.set.images.push_back({ImageId(i), "x.jpg", 1, 1});
  PackOptions options;
  options.shard_bytes = 10;
  const auto plan = make_plan(source, {4, 6, kNoFile, 1, 20, 3}, options);
  EXPECT_EQ(plan.first_images, (std::vector<std::size_t>{0, 3, 4, 5, 6}));
}

TEST(PackPlan, identity_follows_all_that_changes_a_set) {
  SourceSet source;
  source.set.categories.push_back({CategoryId(1), "a"});
  for (int i = 0; i < 2; ++i) source.set.images.push_back({ImageId(i), "x.jpg", 1, 1});
  std::set<std::string> identities;
  const auto add = [&](const SourceSet& set, const std::vector<std::uint64_t>& sizes,
                       const PackOptions& options) {
    return identities.insert(make_plan(set, sizes, options).identity).second;
  };
  PackOptions options;
  EXPECT_TRUE(add(source, {4, 6}, options));
  EXPECT_FALSE(add(source, {4, 6}, options));
  EXPECT_TRUE(add(source, {4, 7}, options));
  options.keep_original_jpeg = true;
  EXPECT_TRUE(add(source, {4, 6}, options));
  options.shuffle_seed = 0;
  EXPECT_TRUE(add(source, {4, 6}, options));
  options.limit = 2;
  EXPECT_TRUE(add(source, {4, 6}, options));
  EXPECT_EQ(PackOptions::parse(options.text()).text(), options.text());
  source.set.annotations.push_back({1, ImageId(0), CategoryId(1), {1, 2, 3, 4}, 12, false});
  EXPECT_TRUE(add(source, {4, 6}, options));
  source.set.annotations[0].bbox_xywh[3] = 5;
  EXPECT_TRUE(add(source, {4, 6}, options));
}

}  // namespace
}  // namespace ssd
