// What a set holds, counted from its shards: for the report at the end, for the manifest, for --info.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "coco/annotations.hpp"
#include "record/shard_data.hpp"

namespace ssd {

// What the shards do not say.
struct SourceCounts {
  std::size_t missing_area = 0;
  std::size_t missing_iscrowd = 0;
  std::size_t left_out_images = 0;
};

class Summary {
 public:
  explicit Summary(std::vector<Category> categories);

  void add(const ShardData& shard);

  std::uint64_t jpeg_bytes() const { return jpeg_bytes_; }
  std::size_t image_count() const { return images_; }
  std::size_t box_count() const { return boxes_; }

  nlohmann::ordered_json counts(const SourceCounts& source) const;  // for the manifest
  // Lines for people; those about oddities only where there are any. The last ones: the classes.
  std::vector<std::string> lines(const SourceCounts& source) const;
  std::vector<std::string> warnings() const;

 private:
  void add_image(const ShardData& shard, std::size_t i);
  void add_jpeg(std::uint32_t flags, std::uint64_t source_bytes, std::uint64_t bytes);
  void add_box(const ShardData& shard, std::size_t image, std::size_t i);
  std::vector<std::string> jpeg_lines() const;

  struct Sizes {
    std::size_t images = 0;
    std::uint64_t source_bytes = 0;
    std::uint64_t bytes = 0;
  };

  std::vector<Category> categories_;
  std::unordered_map<std::int64_t, std::size_t> category_places_;
  std::vector<std::size_t> boxes_per_category_;  // in the order of the categories
  std::unordered_set<std::int64_t> annotation_ids_;
  std::size_t duplicate_annotation_ids_ = 0;
  std::int64_t first_duplicate_id_ = 0;
  std::size_t images_ = 0, bad_images_ = 0, images_without_boxes_ = 0;
  std::size_t gray_images_ = 0, png_images_ = 0, webp_images_ = 0, bmp_images_ = 0, alpha_images_ = 0,
              cmyk_images_ = 0, turned_images_ = 0, unsized_images_ = 0, warned_images_ = 0;
  std::size_t boxes_ = 0, crowd_boxes_ = 0, boxes_of_no_size_ = 0, boxes_outside_ = 0, boxes_leaving_ = 0;
  std::size_t duplicate_boxes_ = 0;
  std::size_t small_boxes_ = 0, medium_boxes_ = 0;
  std::uint64_t jpeg_bytes_ = 0;
  Sizes sequential_, progressive_, arithmetic_;  // encoded anew, by how the source was coded
  Sizes converted_;                              // PNG, WebP and BMP
  Sizes kept_;                                   // stored as the source's bytes
};

std::string describe_bytes(std::uint64_t bytes);  // "1.2 kB", "3.4 MB", "5.67 GB"

}  // namespace ssd
