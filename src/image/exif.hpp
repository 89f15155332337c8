// The orientation tag of an EXIF block (EXIF 2.32, section 4.6: tag 0x0112 of IFD 0, in a TIFF 6.0
// structure).
#pragma once

#include <cstddef>
#include <span>

namespace ssd {

// Takes the data of a JPEG's APP1 marker, without marker and length. Never throws and never reads outside the
// span: a block that is not EXIF, is damaged, or has no valid orientation gives 1.
int exif_orientation(std::span<const std::byte> app1);

// The same of the TIFF structure alone, as PNG and WebP hold it.
int tiff_orientation(std::span<const std::byte> tiff);

}  // namespace ssd
