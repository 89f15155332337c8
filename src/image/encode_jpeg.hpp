// A raster as a baseline JPEG without chroma subsampling (4:4:4). Local, thread safe.
#pragma once

#include <cstddef>
#include <vector>

#include "image/rgb_image.hpp"

namespace ssd {

enum class JpegColors { rgb, gray };  // gray: of the red channel

// quality: 1 to 100, libjpeg's. The same bytes for the same pixels on any processor. Throws Error where the
// picture is too large for the format (65500 pixels a side) or memory is short.
std::vector<std::byte> encode_jpeg(const RgbImage& picture, JpegColors colors, int quality);

}  // namespace ssd
