#include "preprocess/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "preprocess/check_image.hpp"

namespace ssd {
namespace {

// A box that ends this far outside the image is more than rounding. Pixels.
constexpr double kLeavingTolerance = 1;
// Above this share of such boxes the JSON probably holds corners in place of sizes.
constexpr double kSuspiciousShare = .2;
// COCO's area ranges, pixels^2.
constexpr double kSmallArea = 32 * 32;
constexpr double kMediumArea = 96 * 96;
constexpr std::size_t kBarWidth = 40;  // of the class with the most boxes

bool leaves_image(const BoxXywh& box, int width, int height) {
  return width > 0 &&
         (box[0] + box[2] > width + kLeavingTolerance || box[1] + box[3] > height + kLeavingTolerance);
}

std::size_t count_duplicate_boxes(const ShardData& shard, std::size_t first, std::size_t last) {
  std::vector<std::tuple<std::int64_t, BoxXywh>> boxes;
  for (std::size_t i = first; i < last; ++i)
    boxes.emplace_back(shard.annotation_category_ids[i], shard.bboxes_xywh[i]);
  std::sort(boxes.begin(), boxes.end());
  return boxes.size() - static_cast<std::size_t>(std::unique(boxes.begin(), boxes.end()) - boxes.begin());
}

std::string describe_growth(std::uint64_t source_bytes, std::uint64_t bytes) {
  const auto percent =
      source_bytes == 0 ? 0. : 100 * (static_cast<double>(bytes) / static_cast<double>(source_bytes) - 1);
  return fmt::format("{} became {} ({:+.1f} %)", describe_bytes(source_bytes), describe_bytes(bytes),
                     percent);
}

}  // namespace

Summary::Summary(std::vector<Category> categories)
    : categories_(std::move(categories)), boxes_per_category_(categories_.size()) {
  for (std::size_t i = 0; i < categories_.size(); ++i) category_places_.emplace(categories_[i].id.value(), i);
}

void Summary::add(const ShardData& shard) {
  for (std::size_t i = 0; i < shard.image_ids.size(); ++i) add_image(shard, i);
}

void Summary::add_image(const ShardData& shard, std::size_t i) {
  const auto flags = shard.image_flags[i];
  const bool is_bad = (flags & kImageBad) != 0;
  const auto first = shard.first_annotations[i], last = shard.first_annotations[i + 1];
  ++images_;
  bad_images_ += is_bad;
  gray_images_ += (flags & kImageGray) != 0;
  png_images_ += (flags & kImageSourcePng) != 0;
  webp_images_ += (flags & kImageSourceWebp) != 0;
  bmp_images_ += (flags & kImageSourceBmp) != 0;
  alpha_images_ += (flags & kImageSourceAlpha) != 0;
  cmyk_images_ += (flags & kImageCmyk) != 0;
  unsized_images_ += (flags & kImageSizeFromPicture) != 0;
  turned_images_ += shard.orientations[i] != 1;
  warned_images_ += shard.decode_warnings[i] != 0 && !is_bad;
  images_without_boxes_ += first == last;
  if (!is_bad) add_jpeg(flags, shard.source_bytes[i], shard.jpeg_bytes[i]);
  for (auto k = first; k < last; ++k) add_box(shard, i, k);
  duplicate_boxes_ += count_duplicate_boxes(shard, first, last);
}

void Summary::add_jpeg(std::uint32_t flags, std::uint64_t source_bytes, std::uint64_t bytes) {
  constexpr auto kConverted = kImageSourcePng | kImageSourceWebp | kImageSourceBmp;
  auto& sizes = (flags & kConverted) != 0                ? converted_
                : (flags & kImageEncodedAnew) == 0       ? kept_
                : (flags & kImageSourceProgressive) != 0 ? progressive_
                : (flags & kImageSourceArithmetic) != 0  ? arithmetic_
                                                         : sequential_;
  ++sizes.images;
  sizes.source_bytes += source_bytes;
  sizes.bytes += bytes;
  jpeg_bytes_ += bytes;
}

void Summary::add_box(const ShardData& shard, std::size_t image, std::size_t i) {
  const auto& box = shard.bboxes_xywh[i];
  const auto flags = shard.annotation_flags[i];
  const bool has_size = box[2] > 0 && box[3] > 0;
  ++boxes_;
  crowd_boxes_ += (flags & kAnnotationCrowd) != 0;
  boxes_of_no_size_ += !has_size;
  boxes_outside_ += has_size && (flags & kAnnotationTrainable) == 0;
  boxes_leaving_ += leaves_image(box, shard.widths[image], shard.heights[image]);
  small_boxes_ += shard.areas[i] < kSmallArea;
  medium_boxes_ += shard.areas[i] >= kSmallArea && shard.areas[i] < kMediumArea;
  ++boxes_per_category_[category_places_.at(shard.annotation_category_ids[i])];
  if (!annotation_ids_.insert(shard.annotation_ids[i]).second && duplicate_annotation_ids_++ == 0)
    first_duplicate_id_ = shard.annotation_ids[i];
}

nlohmann::ordered_json Summary::counts(const SourceCounts& source) const {
  nlohmann::ordered_json json;
  json["images"] = images_;
  json["bad_images"] = bad_images_;
  json["images_without_boxes"] = images_without_boxes_;
  json["gray_images"] = gray_images_;
  json["cmyk_images"] = cmyk_images_;
  json["png_images"] = png_images_;
  json["webp_images"] = webp_images_;
  json["bmp_images"] = bmp_images_;
  json["images_over_white"] = alpha_images_;
  json["turned_images"] = turned_images_;
  json["images_sized_by_picture"] = unsized_images_;
  json["images_with_decode_warnings"] = warned_images_;
  json["boxes"] = boxes_;
  json["crowd_boxes"] = crowd_boxes_;
  json["boxes_of_no_size"] = boxes_of_no_size_;
  json["boxes_outside"] = boxes_outside_;
  json["duplicate_boxes"] = duplicate_boxes_;
  json["duplicate_annotation_ids"] = duplicate_annotation_ids_;
  json["missing_area"] = source.missing_area;
  json["missing_iscrowd"] = source.missing_iscrowd;
  json["jpeg_bytes"] = jpeg_bytes_;
  json["source_bytes"] = sequential_.source_bytes + progressive_.source_bytes + arithmetic_.source_bytes +
                         converted_.source_bytes + kept_.source_bytes;
  json["images_encoded_anew"] = sequential_.images + progressive_.images + arithmetic_.images;
  return json;
}

std::vector<std::string> Summary::lines(const SourceCounts& source) const {
  std::vector<std::string> lines;
  const auto add_where_any = [&](std::size_t count, std::string_view text) {
    if (count != 0) lines.push_back(fmt::format("  {:>9} {}", count, text));
  };
  lines.push_back(fmt::format("  {:>9} images without boxes", images_without_boxes_));
  lines.push_back(fmt::format("  {:>9} crowd boxes", crowd_boxes_));
  lines.push_back(fmt::format("  {:>9} boxes not for training ({} of no size, {} outside the image)",
                              boxes_of_no_size_ + boxes_outside_, boxes_of_no_size_, boxes_outside_));
  add_where_any(bad_images_, "images packed without a picture");
  add_where_any(source.left_out_images, "images left out");
  add_where_any(gray_images_, "gray images");
  add_where_any(cmyk_images_, "CMYK images");
  add_where_any(alpha_images_, "images with transparent pixels, laid over white");
  add_where_any(turned_images_, "images turned as EXIF says");
  add_where_any(unsized_images_, "images whose size the JSON does not give: taken from the picture");
  add_where_any(warned_images_, "images that decode with warnings");
  add_where_any(duplicate_boxes_, "boxes that repeat another one of their image and class");
  add_where_any(source.missing_area, "annotations without area: width x height is taken");
  add_where_any(source.missing_iscrowd, "annotations without iscrowd: 0 is taken");
  for (auto& line : jpeg_lines()) lines.push_back(std::move(line));
  lines.push_back(fmt::format("  {:>9} boxes by area: {} small, {} medium, {} large (32^2, 96^2 pixels)",
                              boxes_, small_boxes_, medium_boxes_, boxes_ - small_boxes_ - medium_boxes_));
  lines.push_back(fmt::format("  {:>9} classes; boxes of each:", categories_.size()));
  std::size_t widest = 0, most = 1;
  for (const auto& category : categories_) widest = std::max(widest, category.name.size());
  for (const auto count : boxes_per_category_) most = std::max(most, count);
  for (std::size_t i = 0; i < categories_.size(); ++i) {
    const auto count = boxes_per_category_[i];
    lines.push_back(fmt::format("  {:>9} {:<{}}  (label {}, category id {}) {}", count, categories_[i].name,
                                widest, i + 1, categories_[i].id.value(),
                                std::string(count * kBarWidth / most, '#')));
    lines.back().erase(lines.back().find_last_not_of(' ') + 1);
  }
  return lines;
}

// How the pictures are stored, and what that costs.
std::vector<std::string> Summary::jpeg_lines() const {
  std::vector<std::string> lines;
  const auto add = [&](const Sizes& sizes, std::string_view text) {
    if (sizes.images == 0) return;
    lines.push_back(
        fmt::format("  {:>9} {}: {}", sizes.images, text, describe_growth(sizes.source_bytes, sizes.bytes)));
  };
  add(sequential_, "images encoded anew without loss");
  add(progressive_, "progressive images encoded anew without loss");
  add(arithmetic_, "arithmetic-coded images encoded anew without loss");
  add(converted_, fmt::format("images converted to JPEG of quality {} ({} PNG, {} WebP, {} BMP)",
                              kConvertedQuality, png_images_, webp_images_, bmp_images_));
  if (kept_.images != 0)
    lines.push_back(
        fmt::format("  {:>9} images stored as they are: {}", kept_.images, describe_bytes(kept_.bytes)));
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

std::string describe_bytes(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", value / 1e3);
  return bytes < 1'000'000'000 ? fmt::format("{:.1f} MB", value / 1e6)
                               : fmt::format("{:.2f} GB", value / 1e9);
}

}  // namespace ssd
