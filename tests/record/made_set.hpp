// Sets of shards made in memory: made-up records, and bytes in place of JPEG files (src/record never
// decodes).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "record/manifest.hpp"
#include "record/set_folder.hpp"
#include "record/shard_set.hpp"
#include "record/shard_writer.hpp"

namespace ssd {

struct MadeRecord {
  RecordToWrite record;
  std::vector<std::byte> jpeg;
};

inline const std::vector<Category>& made_categories() {
  static const std::vector<Category> categories{
      {CategoryId(13), "cat"}, {CategoryId(0), "käse"}, {CategoryId(90), "x"}};
  return categories;
}

inline std::vector<MadeRecord> made_records(std::size_t count) {
  RandomStream random(1, RandomPurpose::test, 0, 0);
  std::vector<MadeRecord> records;
  for (std::size_t i = 0; i < count; ++i) {
    MadeRecord made;
    auto& record = made.record;
    record.image = {ImageId(static_cast<std::int64_t>(i * 7) + (std::int64_t{1} << 40)),
                    "folder/" + std::to_string(i) + ".jpg", static_cast<int>(random.below(600)) + 1,
                    static_cast<int>(random.below(600)) + 1};
    record.json_order = i + 100;
    record.stored_width = record.image.height;
    record.stored_height = record.image.width;
    record.orientation = static_cast<int>(i % 8) + 1;
    record.source_orientation = static_cast<int>((i + 3) % 8) + 1;
    record.flags = i % 2 == 0 ? kImageGray : kImageCmyk | kImageSizeFromPicture;
    record.decode_warnings = random.below(5);
    record.source_bytes = random.next_u32();
    record.source_digest = {random.next_u32(), random.next_u32()};
    made.jpeg.resize(random.below(900) + 100);
    for (auto& byte : made.jpeg) byte = static_cast<std::byte>(random.below(256));
    record.restart_interval = static_cast<std::uint32_t>(i % 3);  // every third has no index
    for (std::uint32_t k = 0; record.restart_interval != 0 && k <= i % 5; ++k)
      record.restart_offsets.push_back(7 * k + 20);
    for (std::size_t k = 0; k < i % 4; ++k) {
      Annotation annotation;
      annotation.id = static_cast<std::int64_t>(1000 * i + k);
      annotation.image_id = record.image.id;
      annotation.category_id = made_categories()[(i + k) % 3].id;
      annotation.bbox_xywh = {random.uniform(-10, 100), random.uniform(-10, 100), random.uniform(), 1.0 / 3};
      annotation.area = random.uniform(0, 1e5);
      annotation.is_crowd = (i + k) % 5 == 0;
      record.annotations.push_back({annotation, 5000 - 10 * i - k, (i + k) % 3 != 0});
    }
    records.push_back(std::move(made));
  }
  return records;
}

struct MadeSetOptions {
  Split split = Split::train;
  std::uint32_t shard_count = 2;
  std::string identity = std::string(32, 'a');
};

// Shards of equally many records each.
inline void write_made_set(const std::filesystem::path& path, const std::vector<MadeRecord>& records,
                           const MadeSetOptions& options = {}) {
  SetFolder folder(path, options.split);
  std::vector<ShardSummary> shards;
  for (std::uint32_t s = 0; s < options.shard_count; ++s) {
    ShardWriter writer({options.split, s, options.shard_count, options.identity, "{}"}, made_categories());
    for (std::size_t i = records.size() * s / options.shard_count;
         i < records.size() * (s + 1) / options.shard_count; ++i)
      writer.add(records[i].record, records[i].jpeg);
    shards.push_back(writer.close(folder.temporary_path(s, options.shard_count)));
  }
  Manifest manifest{options.split, options.identity, {}, shards};
  manifest.set_digest = set_digest_of(manifest).hex();
  folder.publish(shards, manifest_text(manifest, nlohmann::ordered_json::object()));
}

// Every field that a reader gets, and the bytes.
inline void expect_equal(const ShardSet& set, const Record& record, const MadeRecord& made) {
  const auto& expected = made.record;
  EXPECT_EQ(record.image_id, expected.image.id);
  EXPECT_EQ(record.file_name, expected.image.file_name);
  EXPECT_EQ(record.width, expected.image.width);
  EXPECT_EQ(record.height, expected.image.height);
  EXPECT_EQ(record.orientation, expected.orientation);
  EXPECT_EQ(record.decode_warnings, expected.decode_warnings);
  EXPECT_FALSE(record.is_bad);
  EXPECT_EQ(record.byte_count, made.jpeg.size());
  EXPECT_EQ(record.crc32, crc32(made.jpeg));
  std::vector<std::byte> buffer;
  EXPECT_TRUE(std::ranges::equal(set.read_jpeg(record, buffer), made.jpeg));
  EXPECT_EQ(record.restart_interval, expected.restart_interval);
  std::vector<std::uint32_t> restarts{1, 2, 3};
  set.read_restarts(record, restarts);
  EXPECT_EQ(restarts, expected.restart_offsets);
  const auto annotations = set.annotations_of(record);
  ASSERT_EQ(annotations.size(), expected.annotations.size());
  for (std::size_t k = 0; k < annotations.size(); ++k) {
    const auto& [annotation, json_order, is_trainable] = expected.annotations[k];
    EXPECT_EQ(annotations[k].id, annotation.id);
    EXPECT_EQ(annotations[k].category_id, annotation.category_id);
    EXPECT_EQ(made_categories()[static_cast<std::size_t>(annotations[k].label.value() - 1)].id,
              annotation.category_id);
    EXPECT_EQ(annotations[k].bbox_xywh, annotation.bbox_xywh);
    EXPECT_EQ(annotations[k].area, annotation.area);
    EXPECT_EQ(annotations[k].is_crowd, annotation.is_crowd);
    EXPECT_EQ(annotations[k].is_trainable, is_trainable);
    EXPECT_EQ(annotations[k].json_order, json_order);
  }
}

}  // namespace ssd
