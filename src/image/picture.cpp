#include "image/picture.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "core/error.hpp"
#include "image/picture_readers.hpp"

namespace ssd {
namespace {

struct Signature {
  std::size_t place;
  std::string_view bytes;
  const char* name;
};

// What cameras, browsers and editors write. The brands of ISO media files stand behind their length.
constexpr Signature kUnread[] = {
    {4, "ftypheic", "a HEIC picture"},
    {4, "ftypheix", "a HEIC picture"},
    {4, "ftypmif1", "a HEIF picture"},
    {4, "ftypavif", "an AVIF picture"},
    {4, "ftyp", "a video or another ISO media file"},
    {0, "GIF8", "a GIF picture"},
    {0, std::string_view("II*\0", 4), "a TIFF picture"},
    {0, std::string_view("MM\0*", 4), "a TIFF picture"},
    {0, std::string_view("\0\0\0\x0cjP  ", 8), "a JPEG 2000 picture"},
    {0, "\xff\x4f\xff\x51", "a JPEG 2000 picture"},
    {0, "\xff\x0a", "a JPEG XL picture"},
    {0, std::string_view("\0\0\0\x0cJXL ", 8), "a JPEG XL picture"},
    {0, std::string_view("\0\0\1\0", 4), "an icon"},
    {0, "8BPS", "a Photoshop document"},
    {0, "%PDF", "a PDF document"},
    {0, "\x1f\x8b", "gzip-compressed"},
    {0, "PK\x03\x04", "a ZIP archive"},
    {0, "<svg", "an SVG drawing"},
    {0, "<?xml", "an XML document"},
    {0, "<!DOCTYPE", "an HTML page; was the download refused?"},
    {0, "<html", "an HTML page; was the download refused?"},
    {0, "version https://git-lfs", "a Git LFS pointer, not the picture; run git lfs pull"},
};

bool has(std::span<const std::byte> bytes, std::size_t place, std::string_view signature) {
  return bytes.size() >= place + signature.size() &&
         std::equal(signature.begin(), signature.end(), bytes.begin() + static_cast<std::ptrdiff_t>(place),
                    [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

}  // namespace

PictureFormat picture_format(std::span<const std::byte> bytes) {
  if (has(bytes, 0, "\xff\xd8")) return PictureFormat::jpeg;
  if (has(bytes, 0, "\x89PNG\r\n\x1a\n")) return PictureFormat::png;
  if (has(bytes, 0, "RIFF") && has(bytes, 8, "WEBP")) return PictureFormat::webp;
  if (has(bytes, 0, "BM")) return PictureFormat::bmp;
  return PictureFormat::other;
}

std::string describe_unread_format(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "an empty file";
  for (const auto& [place, signature, name] : kUnread) {
    if (has(bytes, place, signature)) return name;
  }
  return fmt::format("of no known format (it begins with {:02x})",
                     fmt::join(bytes.first(std::min<std::size_t>(bytes.size(), 4)), " "));
}

DecodedPicture decode_picture(std::span<const std::byte> bytes) {
  switch (picture_format(bytes)) {
    case PictureFormat::png:
      return decode_png(bytes);
    case PictureFormat::webp:
      return decode_webp(bytes);
    case PictureFormat::bmp:
      return decode_bmp(bytes);
    default:
      throw Error(bytes.empty()
                      ? "an empty file"
                      : fmt::format("{}; JPEG, PNG, WebP and BMP are read", describe_unread_format(bytes)));
  }
}

void take_pixels(std::span<const std::uint8_t> levels, std::size_t channels, DecodedPicture& picture) {
  const std::size_t count = levels.size() / channels;
  const bool has_alpha = channels % 2 == 0;
  const std::size_t colors = channels - (has_alpha ? 1 : 0);
  auto& pixels = picture.image.pixels;
  pixels.resize(count * 3);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* from = &levels[i * channels];
    const unsigned alpha = has_alpha ? from[colors] : 255;
    picture.has_alpha |= alpha != 255;
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned level = from[colors == 1 ? 0 : c];
      pixels[3 * i + c] = static_cast<std::uint8_t>((level * alpha + 255 * (255 - alpha) + 127) / 255);
    }
  }
}

void validate_size(const char* kind, std::int64_t width, std::int64_t height) {
  SSD_VALIDATE(width > 0 && height > 0, "{} of {} x {} pixels", kind, width, height);
  SSD_VALIDATE(height <= kLargestPictureInPixels / width, "{} of {} x {} pixels; at most {} pixels are read",
               kind, width, height, kLargestPictureInPixels);
}

}  // namespace ssd
