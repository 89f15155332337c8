// What was packed, counted while it is packed, for the report at the end and the manifest.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "coco/annotations.hpp"
#include "record/shard_writer.hpp"

namespace ssd {

class Summary {
 public:
  explicit Summary(const AnnotationSet& set);  // kept by reference

  void add(const RecordToWrite& record, std::uint64_t jpeg_bytes);
  void add_left_out_image(ImageId id, const std::string& file_name, const std::string& reason);

  std::uint64_t jpeg_bytes() const { return jpeg_bytes_; }
  std::size_t image_count() const { return images_; }
  std::size_t left_out_count() const { return left_out_.size(); }

  // The counts alone, for the manifest, and the images that were left out.
  nlohmann::ordered_json counts() const;
  nlohmann::ordered_json left_out() const;
  // Lines for people; those about oddities only where there are any.
  std::vector<std::string> lines() const;
  std::vector<std::string> warnings() const;

 private:
  struct LeftOut {
    ImageId id;
    std::string file_name;
    std::string reason;
  };

  const AnnotationSet& set_;
  std::size_t duplicate_annotation_ids_ = 0;
  std::int64_t first_duplicate_id_ = 0;
  std::size_t images_ = 0, bad_images_ = 0, images_without_boxes_ = 0;
  std::size_t gray_images_ = 0, cmyk_images_ = 0, turned_images_ = 0, unsized_images_ = 0, warned_images_ = 0;
  std::size_t boxes_ = 0, crowd_boxes_ = 0, boxes_of_no_size_ = 0, boxes_outside_ = 0, boxes_leaving_ = 0;
  std::size_t duplicate_boxes_ = 0;
  std::uint64_t jpeg_bytes_ = 0;
  std::unordered_map<CategoryId, std::size_t> category_places_;
  std::vector<std::size_t> boxes_per_category_;  // in the order of the set's categories
  std::vector<LeftOut> left_out_;
};

}  // namespace ssd
