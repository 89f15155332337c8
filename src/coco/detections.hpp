// COCO results files: a JSON array of {image_id, category_id, bbox, score}. Unknown fields are ignored.
// Thread safe. Whether image and category exist is not known here: match_images (coco/match.hpp) sees to
// that.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
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

struct ReadOptions {
  int threads = 1;
  std::size_t block_bytes = std::size_t{1} << 20;  // read at a time, by each thread
  // Told how many detections were read since the last call, one call at a time, from any of the threads.
  std::function<void(std::size_t count)> on_progress;
};

// In the order of the file, which decides between equal scores. The file may be of any size: no more than a
// block of it for each thread is in memory. Throws Error naming file, index, field and value, the same for
// any number of threads. NaN and infinity are refused.
std::vector<Detection> read_detections(const std::filesystem::path& path, const ReadOptions& options = {});

// Whole or not at all. Every number is written with as many digits as are needed to read the same double
// again. Throws Error where a number is not finite or the file cannot be written.
void write_detections(const std::filesystem::path& path, std::span<const Detection> detections);

}  // namespace ssd
