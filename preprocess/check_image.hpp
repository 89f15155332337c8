// One picture: read, decoded as a check, its raster decided, and encoded anew: a JPEG without loss, other
// formats as a JPEG. Called in worker threads.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "coco/annotations.hpp"
#include "image/jpeg.hpp"
#include "image/jpeg_transcode.hpp"
#include "image/picture.hpp"
#include "record/shard_writer.hpp"

namespace ssd {

enum class ImageProblemKind { none, missing, unreadable, undecodable, cut_off, wrong_size };

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

enum class StoredJpeg {
  anew,     // as JpegTranscoder encodes it, and the file's bytes where it cannot
  original  // the file's bytes
};

// Whether the file at path is the source of image i of a shard: its size and digest. False where it cannot be
// read.
bool is_source_of(const ShardData& data, std::size_t i, const std::filesystem::path& path);

// What PNG, WebP and BMP become: a baseline JPEG, 4:4:4, or gray where the PNG is.
inline constexpr int kConvertedQuality = 95;  // libjpeg's

// One for each thread.
class ImageChecker {
 public:
  // Throws Error where the file changed while it was read.
  CheckedImage check(const ImageEntry& image, const std::filesystem::path& folder, StoredJpeg stored);

 private:
  JpegInfo convert(CheckedImage& image);
  void encode_anew(CheckedImage& image);

  JpegDecoder decoder_;
  JpegTranscoder transcoder_;
  RgbImage pixels_;
};

}  // namespace ssd
