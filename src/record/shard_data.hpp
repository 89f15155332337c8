// The contents of one shard as plain arrays, named and ordered as in FORMAT.md; writer, reader and digest all
// walk the one table in visit_datasets. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/digest.hpp"
#include "record/split.hpp"

namespace ssd {

inline constexpr std::uint32_t kShardFormatVersion = 1;

// Bits of images/flags.
inline constexpr std::uint32_t kImageBad = 1U << 0;
inline constexpr std::uint32_t kImageGray = 1U << 1;
inline constexpr std::uint32_t kImageCmyk = 1U << 2;
inline constexpr std::uint32_t kImageEncodedAnew = 1U << 3;
inline constexpr std::uint32_t kImageSizeFromPicture = 1U << 4;
inline constexpr std::uint32_t kImageSourceProgressive = 1U << 5;
inline constexpr std::uint32_t kImageSourceArithmetic = 1U << 6;
inline constexpr std::uint32_t kImageSourcePng = 1U << 7;
inline constexpr std::uint32_t kImageSourceWebp = 1U << 8;
inline constexpr std::uint32_t kImageSourceBmp = 1U << 9;
inline constexpr std::uint32_t kImageSourceAlpha = 1U << 10;
// Bits of annotations/flags.
inline constexpr std::uint32_t kAnnotationCrowd = 1U << 0;
inline constexpr std::uint32_t kAnnotationTrainable = 1U << 1;

struct ShardHeader {
  Split split = Split::train;
  std::uint32_t index = 0;
  std::uint32_t count = 0;
  std::string set_identity;  // 32 hex digits
  std::string options;       // JSON, not empty
  friend bool operator==(const ShardHeader&, const ShardHeader&) = default;
};

// Strings, one after the other; string i is bytes[offsets[i], offsets[i + 1]).
struct StringTable {
  std::vector<std::uint64_t> offsets{0};
  std::vector<std::uint8_t> bytes;

  std::size_t size() const { return offsets.size() - 1; }
  void add(std::string_view text);
  std::string at(std::size_t i) const;  // offsets must be ascending and inside bytes
};

struct ShardData {
  std::vector<std::int64_t> category_ids;
  StringTable category_names;

  std::vector<std::int64_t> image_ids;
  std::vector<std::uint64_t> image_json_orders;
  StringTable file_names;
  std::vector<std::int32_t> widths, heights;
  std::vector<std::int32_t> stored_widths, stored_heights;
  std::vector<std::uint8_t> orientations, source_orientations;
  std::vector<std::uint32_t> image_flags;
  std::vector<std::uint32_t> decode_warnings;
  std::vector<std::uint64_t> source_bytes;
  std::vector<std::array<std::uint64_t, 2>> source_digests;
  std::vector<std::uint64_t> jpeg_offsets;
  std::vector<std::uint32_t> jpeg_bytes, jpeg_crc32s;
  std::vector<std::uint64_t> first_annotations{0};
  std::vector<std::uint32_t> restart_intervals;
  std::vector<std::uint64_t> first_restarts{0};

  std::vector<std::int64_t> annotation_ids;
  std::vector<std::uint64_t> annotation_json_orders;
  std::vector<std::int64_t> annotation_category_ids;
  std::vector<std::array<double, 4>> bboxes_xywh;
  std::vector<double> areas;
  std::vector<std::uint32_t> annotation_flags;

  std::vector<std::uint32_t> restart_offsets;
};

// Calls visit(name, rows) for every dataset but "jpeg", in the order of FORMAT.md.
template <class Data, class Visit>
void visit_datasets(Data& data, Visit&& visit) {
  visit("categories/id", data.category_ids);
  visit("categories/name_offset", data.category_names.offsets);
  visit("categories/name", data.category_names.bytes);
  visit("images/id", data.image_ids);
  visit("images/json_order", data.image_json_orders);
  visit("images/file_name_offset", data.file_names.offsets);
  visit("images/file_name", data.file_names.bytes);
  visit("images/width", data.widths);
  visit("images/height", data.heights);
  visit("images/stored_width", data.stored_widths);
  visit("images/stored_height", data.stored_heights);
  visit("images/orientation", data.orientations);
  visit("images/source_orientation", data.source_orientations);
  visit("images/flags", data.image_flags);
  visit("images/decode_warnings", data.decode_warnings);
  visit("images/source_bytes", data.source_bytes);
  visit("images/source_digest", data.source_digests);
  visit("images/jpeg_offset", data.jpeg_offsets);
  visit("images/jpeg_bytes", data.jpeg_bytes);
  visit("images/jpeg_crc32", data.jpeg_crc32s);
  visit("images/first_annotation", data.first_annotations);
  visit("images/restart_interval", data.restart_intervals);
  visit("images/first_restart", data.first_restarts);
  visit("annotations/id", data.annotation_ids);
  visit("annotations/json_order", data.annotation_json_orders);
  visit("annotations/category_id", data.annotation_category_ids);
  visit("annotations/bbox_xywh", data.bboxes_xywh);
  visit("annotations/area", data.areas);
  visit("annotations/flags", data.annotation_flags);
  visit("restart/offset", data.restart_offsets);
}

// FORMAT.md, "Digests".
Digest content_digest(const ShardHeader& header, const ShardData& data);

// Throws Error where row counts, offsets or values contradict each other. jpeg_data_bytes: size of the
// dataset "jpeg".
void validate(const ShardData& data, std::uint64_t jpeg_data_bytes);

}  // namespace ssd
