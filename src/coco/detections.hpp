// COCO results files: a JSON array of {image_id, category_id, bbox, score}. Unknown fields are ignored.
// Thread safe. Whether image and category exist is not known here: match_images (coco/match.hpp) sees to
// that.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "coco/annotations.hpp"
#include "core/ids.hpp"

namespace ssd {

struct Detection {
  ImageId image_id;
  CategoryId category_id;
  BoxXywh bbox_xywh{};  // pixels of the original image
  double score = 0;
};

// In the order of the file, which decides between equal scores. Throws Error naming file, index, field and
// value. NaN and infinity are refused.
std::vector<Detection> read_detections(const std::filesystem::path& path);

// Whole or not at all. Every number is written with as many digits as are needed to read the same double
// again. Throws Error where a number is not finite or the file cannot be written.
void write_detections(const std::filesystem::path& path, std::span<const Detection> detections);

}  // namespace ssd
