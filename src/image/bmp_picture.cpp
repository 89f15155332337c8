#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#include <stb_image.h>

#include <cstdlib>
#include <limits>
#include <memory>

#include "core/error.hpp"
#include "image/picture_readers.hpp"

namespace ssd {
namespace {

// Little-endian numbers of the headers; 0 outside the bytes.
std::uint32_t number_at(std::span<const std::byte> bytes, std::size_t place, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count && place + i < bytes.size(); ++i)
    value |= std::to_integer<std::uint32_t>(bytes[place + i]) << 8 * i;
  return value;
}

// BITMAPFILEHEADER and BITMAPINFOHEADER, or the older BITMAPCOREHEADER.
struct Header {
  std::int64_t width, height;  // height: without the sign that turns the rows' order round
  std::uint32_t bits, compression, pixels_place;
};
Header header_of(std::span<const std::byte> bytes) {
  const auto at = [&](std::size_t place, std::size_t count) { return number_at(bytes, place, count); };
  const std::uint32_t pixels_place = at(10, 4);
  if (at(14, 4) == 12) return {at(18, 2), at(20, 2), at(24, 2), 0, pixels_place};
  const std::int64_t height = static_cast<std::int32_t>(at(22, 4));
  return {static_cast<std::int32_t>(at(18, 4)), height < 0 ? -height : height, at(28, 2), at(30, 4),
          pixels_place};
}

}  // namespace

DecodedPicture decode_bmp(std::span<const std::byte> bytes) {
  constexpr std::uint32_t kPlain = 0, kBitFields = 3, kAlphaBitFields = 6;
  SSD_VALIDATE(bytes.size() >= 26, "a BMP that is cut off: {} bytes", bytes.size());
  const Header header = header_of(bytes);
  validate_size("a BMP", header.width, header.height);
  SSD_VALIDATE(header.compression == kPlain || header.compression == kBitFields ||
                   header.compression == kAlphaBitFields,
               "a compressed BMP (kind {}); save it as PNG", header.compression);
  // The library takes what lacks at the end for zeros.
  const std::uint64_t row_bytes = (static_cast<std::uint64_t>(header.width) * header.bits + 31) / 32 * 4;
  SSD_VALIDATE(header.pixels_place + row_bytes * static_cast<std::uint64_t>(header.height) <= bytes.size() &&
                   bytes.size() <= std::numeric_limits<int>::max(),
               "a BMP that is cut off: its {} bytes end before the picture does", bytes.size());
  int width = 0, height = 0, channels = 0;
  const std::unique_ptr<stbi_uc, decltype(&std::free)> levels(
      stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()), static_cast<int>(bytes.size()),
                            &width, &height, &channels, 4),
      &std::free);
  SSD_VALIDATE(levels != nullptr, "a BMP that cannot be read: {}", stbi_failure_reason());
  SSD_VALIDATE(width == header.width && height == header.height, "a damaged BMP");
  const auto count = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  // The fourth byte of a plain pixel of 32 bits means nothing.
  if (header.compression == kPlain) {
    for (std::size_t i = 0; i < count; ++i) levels.get()[4 * i + 3] = 255;
  }
  DecodedPicture picture;
  picture.image = {width, height, {}};
  take_pixels({levels.get(), 4 * count}, 4, picture);
  return picture;
}

}  // namespace ssd
