#include "report/image_file.hpp"

#include <png.h>

#include <string_view>

#include "core/atomic_file.hpp"
#include "core/error.hpp"
#include "image/encode_jpeg.hpp"

namespace ssd {
namespace {

constexpr int kJpegQuality = 92;  // and 4:4:4: thin lines keep their colours

std::vector<std::byte> encode_png(const RgbImage& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t count = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<std::byte> result(count);
  if (png_image_write_to_memory(&image, result.data(), &count, 0, picture.pixels.data(), 0, nullptr) == 0)
    throw LibraryError("libpng", "png_image_write_to_memory", image.message);
  result.resize(count);
  return result;
}

}  // namespace

std::vector<std::byte> encode_image(const RgbImage& picture, ImageFormat format) {
  return format == ImageFormat::png ? encode_png(picture)
                                    : encode_jpeg(picture, JpegColors::rgb, kJpegQuality);
}

void write_image(const std::filesystem::path& path, const RgbImage& picture, ImageFormat format) {
  const auto bytes = encode_image(picture, format);
  write_file_atomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace ssd
