// The eight EXIF orientations (EXIF 2.32, tag 0x0112): the stored raster of a JPEG and the upright picture.
#pragma once

#include "image/rgb_image.hpp"

namespace ssd {

// The upright picture of a stored raster, orientation 1 to 8. A rectangle of the one, turned, is a rectangle
// of the other: see stored_rect.
RgbImage apply_orientation(const RgbImage& stored, int orientation);

// The same into memory that is used again. The view is of `buffer`.
RgbView apply_orientation(const RgbView& stored, int orientation, std::vector<std::uint8_t>& buffer);

// The stored raster of an upright picture, and where a rectangle of the picture lies in it.
PictureSize stored_size(const PictureSize& upright, int orientation);
PixelRect stored_rect(const PixelRect& rect, int orientation, const PictureSize& upright);

}  // namespace ssd
