// Decoding of a rectangle of a JPEG by its restart segments. Restart markers cut the entropy-coded data of a
// baseline JPEG into segments that can be decoded alone: those that meet the rectangle are put together into
// a small JPEG of their own, so that the rest costs nothing. Where there is no index of the segments, or they
// do not fit the rows of the picture, libjpeg skips what it can.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "image/jpeg.hpp"
#include "image/jpeg_segments.hpp"

namespace ssd {

// Where the restart segments of a JPEG lie: record/FORMAT.md, "images/restart_interval" and "restart/offset".
struct RestartIndex {
  std::uint32_t interval_mcus = 0;         // of the JPEG's DRI marker; 0: no index
  std::span<const std::uint32_t> offsets;  // first byte of each segment's data, from the JPEG's first byte
};

// A small JPEG with the segments that a rectangle needs, and where its picture lies in the whole one.
struct SplicedJpeg {
  std::vector<std::byte> bytes;  // used again from call to call
  PictureSize size;
  int left = 0;  // in the stored raster
  int top = 0;
};

// False where the JPEG is not baseline with one scan, the index does not fit it, or the segments do not end
// with its rows of MCUs; `spliced` is then unspecified. Reads nothing outside `bytes`, whatever they hold.
bool splice_jpeg(std::span<const std::byte> bytes, const RestartIndex& restarts, const PictureSize& size,
                 const PixelRect& rect, SplicedJpeg& spliced);

// Not thread safe; keeps its buffers: one for each thread.
class JpegCropDecoder {
 public:
  // JpegDecoder::decode_rect, faster where `restarts` is the index of these bytes. The view is good until the
  // next call.
  RgbView decode(std::span<const std::byte> bytes, const RestartIndex& restarts, const PictureSize& size,
                 const PixelRect& rect);

 private:
  SegmentDecoder segments_;
  JpegDecoder decoder_;
  SplicedJpeg spliced_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace ssd
