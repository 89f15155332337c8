// One reader for each format of picture.hpp, for picture.cpp alone, and what they share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "image/picture.hpp"

namespace ssd {

DecodedPicture decode_png(std::span<const std::byte> bytes);
DecodedPicture decode_webp(std::span<const std::byte> bytes);
DecodedPicture decode_bmp(std::span<const std::byte> bytes);

// Throws Error for sizes that are none, and for larger pictures than are read. kind: "a PNG".
void validate_size(const char* kind, std::int64_t width, std::int64_t height);

// levels: whole pixels of 1 gray, 2 gray and alpha, 3 R G B, or 4 R G B and alpha. Sets the picture's pixels,
// over white, and has_alpha.
void take_pixels(std::span<const std::uint8_t> levels, std::size_t channels, DecodedPicture& picture);

}  // namespace ssd
