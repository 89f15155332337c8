// Pictures of other formats than JPEG: PNG, WebP and BMP, decoded whole to 8-bit RGB. Local, thread safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "image/rgb_image.hpp"

namespace ssd {

enum class PictureFormat { jpeg, png, webp, bmp, other };

// By the first bytes; the file's name does not matter.
PictureFormat picture_format(std::span<const std::byte> bytes);

// Of a file that is not read: "a HEIC picture", "a GIF picture", "an empty file", "of no known format (it
// begins with 00 01 02 03)".
std::string describe_unread_format(std::span<const std::byte> bytes);

struct DecodedPicture {
  RgbImage image;
  bool is_gray = false;    // a gray PNG: three equal channels
  bool has_alpha = false;  // some pixels were not opaque
  int orientation = 1;     // EXIF tag 0x0112, 1 to 8; 1 where there is none or it is broken. Not applied
};

// PNG of every colour type and depth (16 bits are scaled to 8; gamma and colour profiles are left alone),
// WebP with or without loss, BMP without compression of 1 to 32 bits. Pixels that are not opaque lie over
// white. Throws Error with the reason alone: another format, damaged, cut off, animated, too large.
DecodedPicture decode_picture(std::span<const std::byte> bytes);

}  // namespace ssd
