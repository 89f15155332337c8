// Pictures as files: PNG, and JPEG of good quality. Local, thread safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "image/jpeg.hpp"

namespace ssd {

enum class ImageFormat { png, jpeg };

// Throws Error where the picture is too large for the format (JPEG: 65500 pixels a side) or memory is short.
std::vector<std::byte> encode_image(const RgbImage& picture, ImageFormat format);

// Whole or not at all. Throws Error where the file cannot be written.
void write_image(const std::filesystem::path& path, const RgbImage& picture, ImageFormat format);

}  // namespace ssd
