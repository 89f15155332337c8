#include "preprocess/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>

namespace ssd {
namespace {

// A box that ends this far outside the image is more than rounding. Pixels.
constexpr double kLeavingTolerance = 1;
// Above this share of such boxes the JSON probably holds corners in place of sizes.
constexpr double kSuspiciousShare = .2;

bool leaves_image(const BoxXywh& box, const ImageEntry& image) {
  return image.width > 0 && (box[0] + box[2] > image.width + kLeavingTolerance ||
                             box[1] + box[3] > image.height + kLeavingTolerance);
}

std::size_t count_duplicate_boxes(const std::vector<AnnotationToWrite>& annotations) {
  std::vector<std::tuple<CategoryId, BoxXywh>> boxes;
  for (const auto& entry : annotations)
    boxes.emplace_back(entry.annotation.category_id, entry.annotation.bbox_xywh);
  std::sort(boxes.begin(), boxes.end());
  return boxes.size() - static_cast<std::size_t>(std::unique(boxes.begin(), boxes.end()) - boxes.begin());
}

}  // namespace

Summary::Summary(const AnnotationSet& set) : set_(set), boxes_per_category_(set.categories.size()) {
  for (std::size_t i = 0; i < set.categories.size(); ++i) category_places_.emplace(set.categories[i].id, i);
  std::unordered_set<std::int64_t> ids;
  ids.reserve(set.annotations.size());
  for (const auto& annotation : set.annotations) {
    if (ids.insert(annotation.id).second) continue;
    if (duplicate_annotation_ids_++ == 0) first_duplicate_id_ = annotation.id;
  }
}

void Summary::add(const RecordToWrite& record, std::uint64_t jpeg_bytes) {
  ++images_;
  jpeg_bytes_ += jpeg_bytes;
  bad_images_ += (record.flags & kImageBad) != 0;
  gray_images_ += (record.flags & kImageGray) != 0;
  cmyk_images_ += (record.flags & kImageCmyk) != 0;
  unsized_images_ += (record.flags & kImageSizeFromPicture) != 0;
  turned_images_ += record.orientation != 1;
  warned_images_ += record.decode_warnings != 0 && (record.flags & kImageBad) == 0;
  images_without_boxes_ += record.annotations.empty();
  for (const auto& entry : record.annotations) {
    const auto& annotation = entry.annotation;
    ++boxes_;
    crowd_boxes_ += annotation.is_crowd;
    const bool has_size = annotation.bbox_xywh[2] > 0 && annotation.bbox_xywh[3] > 0;
    boxes_of_no_size_ += !has_size;
    boxes_outside_ += has_size && !entry.is_trainable;
    boxes_leaving_ += leaves_image(annotation.bbox_xywh, record.image);
    ++boxes_per_category_[category_places_.at(annotation.category_id)];
  }
  duplicate_boxes_ += count_duplicate_boxes(record.annotations);
}

void Summary::add_left_out_image(ImageId id, const std::string& file_name, const std::string& reason) {
  left_out_.push_back({id, file_name, reason});
}

nlohmann::ordered_json Summary::counts() const {
  nlohmann::ordered_json json;
  json["images"] = images_;
  json["bad_images"] = bad_images_;
  json["images_without_boxes"] = images_without_boxes_;
  json["gray_images"] = gray_images_;
  json["cmyk_images"] = cmyk_images_;
  json["turned_images"] = turned_images_;
  json["images_sized_by_picture"] = unsized_images_;
  json["images_with_decode_warnings"] = warned_images_;
  json["boxes"] = boxes_;
  json["crowd_boxes"] = crowd_boxes_;
  json["boxes_of_no_size"] = boxes_of_no_size_;
  json["boxes_outside"] = boxes_outside_;
  json["duplicate_boxes"] = duplicate_boxes_;
  json["duplicate_annotation_ids"] = duplicate_annotation_ids_;
  json["missing_area"] = set_.missing_area_count;
  json["missing_iscrowd"] = set_.missing_iscrowd_count;
  json["jpeg_bytes"] = jpeg_bytes_;
  return json;
}

nlohmann::ordered_json Summary::left_out() const {
  auto json = nlohmann::ordered_json::array();
  for (const auto& [id, file_name, reason] : left_out_)
    json.push_back({{"image_id", id.value()}, {"file_name", file_name}, {"reason", reason}});
  return json;
}

std::vector<std::string> Summary::lines() const {
  std::vector<std::string> lines;
  const auto add_where_any = [&](std::size_t count, std::string_view text) {
    if (count != 0) lines.push_back(fmt::format("  {:>9} {}", count, text));
  };
  lines.push_back(fmt::format("  {:>9} images without boxes", images_without_boxes_));
  lines.push_back(fmt::format("  {:>9} crowd boxes", crowd_boxes_));
  lines.push_back(fmt::format("  {:>9} boxes not for training ({} of no size, {} outside the image)",
                              boxes_of_no_size_ + boxes_outside_, boxes_of_no_size_, boxes_outside_));
  add_where_any(bad_images_, "images packed without a picture");
  add_where_any(left_out_.size(), "images left out");
  add_where_any(gray_images_, "gray images");
  add_where_any(cmyk_images_, "CMYK images");
  add_where_any(turned_images_, "images turned as EXIF says");
  add_where_any(unsized_images_, "images whose size the JSON does not give: taken from the picture");
  add_where_any(warned_images_, "images that decode with warnings");
  add_where_any(duplicate_boxes_, "boxes that repeat another one of their image and class");
  add_where_any(set_.missing_area_count, "annotations without area: width x height is taken");
  add_where_any(set_.missing_iscrowd_count, "annotations without iscrowd: 0 is taken");
  lines.push_back(fmt::format("  {:>9} classes; boxes of each:", set_.categories.size()));
  std::size_t widest = 0;
  for (const auto& category : set_.categories) widest = std::max(widest, category.name.size());
  for (std::size_t i = 0; i < set_.categories.size(); ++i)
    lines.push_back(fmt::format("  {:>9} {:<{}}  (label {}, category id {})", boxes_per_category_[i],
                                set_.categories[i].name, widest, i + 1, set_.categories[i].id.value()));
  return lines;
}

std::vector<std::string> Summary::warnings() const {
  std::vector<std::string> warnings;
  if (boxes_ > 0 && static_cast<double>(boxes_leaving_) > kSuspiciousShare * static_cast<double>(boxes_))
    warnings.push_back(fmt::format(
        "{} of {} boxes leave their image: does the JSON hold corners (x1 y1 x2 y2)? bbox is left, top, "
        "width, height",
        boxes_leaving_, boxes_));
  if (duplicate_annotation_ids_ != 0)
    warnings.push_back(
        fmt::format("{} annotations use an id that was used before (the first is {}): all are kept for "
                    "training, but evaluation as "
                    "pycocotools does it keeps the last one alone",
                    duplicate_annotation_ids_, first_duplicate_id_));
  return warnings;
}

}  // namespace ssd
