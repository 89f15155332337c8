// JPEG decoding to 8-bit RGB, of whole pictures and of rectangles. Needs nothing but bytes; one decoder for
// each thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "image/rgb_image.hpp"

namespace ssd {

struct JpegInfo {
  int width = 0;  // of the stored raster, before any rotation
  int height = 0;
  int components = 0;   // 1 gray, 3 colour, 4 CMYK or YCCK
  int orientation = 1;  // EXIF tag 0x0112, 1 to 8; 1 where there is none or it is broken
};

// Reads the headers only. Throws Error: not a JPEG, cut off, not supported (12 bit, lossless).
JpegInfo read_jpeg_info(std::span<const std::byte> bytes);

// Not thread safe; keeps its buffers from call to call.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;

  // Decodes to RGB with libjpeg-turbo's default (ISLOW) transform and fancy upsampling. Gray becomes three
  // equal channels; CMYK with Adobe's marker is inverted: R = C*K/255 on the stored values, without it R =
  // (255-C)*(255-K)/255. Returns the number of warnings (damaged data that still decodes). Throws Error. No
  // EXIF rotation: see orientation.hpp.
  int decode(std::span<const std::byte> bytes, RgbImage& image);

  // The pixels that decode() gives in `rect`, a rectangle of a stored raster of this size, in less time the
  // smaller it is. The view is of `buffer`. Throws Error, also where the raster has another size; damage
  // outside the rectangle may go unnoticed.
  RgbView decode_rect(std::span<const std::byte> bytes, const PictureSize& size, const PixelRect& rect,
                      std::vector<std::uint8_t>& buffer);

  // Of the last decode(): whether the bytes ended before the picture did, so that part of it is made up. A
  // file that lacks nothing but the end marker after one complete scan is not cut off.
  bool is_cut_off() const;

  // read_jpeg_info with this decoder's buffers.
  JpegInfo read_info(std::span<const std::byte> bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ssd
