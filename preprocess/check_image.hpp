// One picture: read, decoded as a check, and its raster decided. Called in worker threads.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "coco/annotations.hpp"
#include "image/jpeg.hpp"
#include "record/shard_writer.hpp"

namespace ssd {

enum class ImageProblemKind { none, missing, unreadable, not_jpeg, cut_off, wrong_size };

// A few words for a report that groups problems: "images whose file is missing".
const char* describe(ImageProblemKind kind);

struct CheckedImage {
  ImageProblemKind problem = ImageProblemKind::none;
  std::string problem_text;     // one line that names the file
  RecordToWrite record;         // without annotations and json_order; flags say bad where there is a problem
  std::vector<std::byte> jpeg;  // empty where there is a problem
};

// The raster that the JSON's boxes are drawn on: width and height (pixels, upright) and the EXIF orientation
// to apply. The size of the JSON decides: that of the stored raster: nothing is turned; that of the turned
// one: it is; none: the picture as stored. Returns false where it fits neither.
struct Raster {
  int width = 0;
  int height = 0;
  int orientation = 1;
};
bool decide_raster(const ImageEntry& image, const JpegInfo& info, Raster& raster);

// One for each thread.
class ImageChecker {
 public:
  CheckedImage check(const ImageEntry& image, const std::filesystem::path& folder);

 private:
  JpegDecoder decoder_;
  RgbImage pixels_;
};

}  // namespace ssd
