#include "record/shard_set.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "core/open_files.hpp"
#include "record/listed_shard.hpp"
#include "record/set_metadata.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

using Labels = std::unordered_map<CategoryId, Label>;

// The one way from a category to a label: place in the list + 1.
Labels labels_of(const std::vector<Category>& categories) {
  Labels labels;
  for (const auto& category : categories)
    labels.emplace(category.id, Label(static_cast<std::int32_t>(labels.size()) + 1));
  return labels;
}

Record record_of(const ShardOnDisk& shard, std::size_t i) {
  const auto& data = shard.data;
  Record record;
  record.image_id = ImageId(data.image_ids[i]);
  record.file_name = data.file_names.at(i);
  record.width = data.widths[i];
  record.height = data.heights[i];
  record.orientation = data.orientations[i];
  record.decode_warnings = data.decode_warnings[i];
  record.is_bad = (data.image_flags[i] & kImageBad) != 0;
  record.shard = shard.header.index;
  record.byte_offset = shard.jpeg_data_offset + data.jpeg_offsets[i];
  record.byte_count = data.jpeg_bytes[i];
  record.crc32 = data.jpeg_crc32s[i];
  record.restart_interval = data.restart_intervals[i];
  record.restart_count = static_cast<std::uint32_t>(data.first_restarts[i + 1] - data.first_restarts[i]);
  record.restart_byte_offset = shard.restart_data_offset + data.first_restarts[i] * sizeof(std::uint32_t);
  record.annotation_count = data.first_annotations[i + 1] - data.first_annotations[i];
  return record;
}

RecordAnnotation annotation_of(const ShardData& data, std::size_t i, const Labels& labels,
                               const fs::path& path) {
  RecordAnnotation annotation;
  annotation.id = data.annotation_ids[i];
  annotation.category_id = CategoryId(data.annotation_category_ids[i]);
  const auto label = labels.find(annotation.category_id);
  SSD_VALIDATE(label != labels.end(),
               "shard '{}': annotation {} has category {}, which the set does not list", path.string(),
               annotation.id, annotation.category_id.value());
  annotation.label = label->second;
  annotation.bbox_xywh = data.bboxes_xywh[i];
  annotation.area = data.areas[i];
  annotation.is_crowd = (data.annotation_flags[i] & kAnnotationCrowd) != 0;
  annotation.is_trainable = (data.annotation_flags[i] & kAnnotationTrainable) != 0;
  annotation.json_order = data.annotation_json_orders[i];
  return annotation;
}

Digest parse_digest(const std::string& hex) {
  SSD_VALIDATE(hex.size() == 32 && hex.find_first_not_of("0123456789abcdef") == hex.npos,
               "'{}' is not a digest", hex);
  return {std::stoull(hex.substr(0, 16), nullptr, 16), std::stoull(hex.substr(16), nullptr, 16)};
}

}  // namespace

ShardSet ShardSet::open(const fs::path& folder, Split split) {
  return ShardSet(folder, read_set_metadata(folder, split));
}

ShardSet::ShardSet(fs::path folder, SetMetadata metadata)
    : folder_(std::move(folder)),
      split_(metadata.manifest.split),
      digest_(parse_digest(metadata.manifest.set_digest)) {
  expect_room_for_files(metadata.shards.size(),
                        fmt::format("the {} {} shards in '{}', which stay open, and the rest of the program",
                                    metadata.shards.size(), split_name(split_), folder_.string()));
  std::size_t record_count = 0, annotation_count = 0;
  for (const auto& shard : metadata.shards) {
    record_count += shard.data.image_ids.size();
    annotation_count += shard.data.annotation_ids.size();
  }
  records_.reserve(record_count);
  annotations_.reserve(annotation_count);
  Labels labels;
  for (std::size_t index = 0; index < metadata.shards.size(); ++index) {
    const auto& summary = metadata.manifest.shards[index];
    const auto path = folder_ / summary.file_name;
    const auto shard = std::exchange(metadata.shards[index], {});  // freed as soon as it is read
    const auto categories = categories_of(shard.data);
    if (index == 0) {
      categories_ = categories;
      labels = labels_of(categories);
    }
    SSD_VALIDATE(equal(categories, categories_), "shard '{}': other categories than the first shard",
                 path.string());
    for (std::size_t i = 0; i < shard.data.image_ids.size(); ++i) {
      auto record = record_of(shard, i);
      record.first_annotation = annotations_.size() + shard.data.first_annotations[i];
      records_.push_back(std::move(record));
    }
    for (std::size_t i = 0; i < shard.data.annotation_ids.size(); ++i)
      annotations_.push_back(annotation_of(shard.data, i, labels, path));
    validate_file_size(path, summary);
    shards_.emplace_back(path);
  }
}

std::span<const RecordAnnotation> ShardSet::annotations_of(const Record& record) const {
  return std::span(annotations_).subspan(record.first_annotation, record.annotation_count);
}

std::span<const std::byte> ShardSet::read_jpeg(const Record& record, std::vector<std::byte>& buffer) const {
  SSD_EXPECT(!record.is_bad && record.shard < shards_.size());
  const auto& shard = shards_[record.shard];
  const auto bytes = shard.read_if_whole(record.byte_offset, record.byte_count, record.crc32, buffer);
  SSD_VALIDATE(bytes, "{} is damaged (CRC-32); copy the shard again or run ssd_preprocess again",
               describe_picture(shard.path(), record.image_id.value(), record.file_name, record.byte_offset));
  return *bytes;
}

void ShardSet::read_restarts(const Record& record, std::vector<std::uint32_t>& offsets) const {
  SSD_EXPECT(record.shard < shards_.size());
  const auto& shard = shards_[record.shard];
  offsets.resize(record.restart_count);
  if (offsets.empty()) return;
  shard.read(record.restart_byte_offset, std::as_writable_bytes(std::span(offsets)));
  // The index was right when the set was opened; a disk may return other bytes now.
  SSD_VALIDATE(std::adjacent_find(offsets.begin(), offsets.end(), std::greater_equal<>()) == offsets.end() &&
                   offsets.back() < record.byte_count,
               "shard '{}': the restart segments of image {} ('{}') are damaged; copy the shard again or run "
               "ssd_preprocess again",
               shard.path().string(), record.image_id.value(), record.file_name);
}

}  // namespace ssd
