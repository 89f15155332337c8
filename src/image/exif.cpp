#include "image/exif.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace ssd {
namespace {

constexpr int kUpright = 1;
constexpr std::uint16_t kOrientationTag = 0x0112;
constexpr std::uint16_t kTypeShort = 3;  // TIFF 6.0, section 2
constexpr std::size_t kEntryBytes = 12;

// Numbers of a TIFF structure, in its own byte order; nothing where they would lie outside.
class TiffNumbers {
 public:
  TiffNumbers(std::span<const std::byte> bytes, bool is_big_endian)
      : bytes_(bytes), is_big_endian_(is_big_endian) {}

  std::optional<std::uint32_t> at(std::size_t offset, std::size_t byte_count) const {
    if (offset > bytes_.size() || byte_count > bytes_.size() - offset) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < byte_count; ++i) {
      const auto place = offset + (is_big_endian_ ? i : byte_count - 1 - i);
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[place]);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool is_big_endian_;
};

bool starts_with(std::span<const std::byte> bytes, std::span<const char> text) {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(),
                    [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

}  // namespace

int exif_orientation(std::span<const std::byte> app1) {
  constexpr std::array<char, 6> kExif{'E', 'x', 'i', 'f', 0, 0};
  return starts_with(app1, kExif) ? tiff_orientation(app1.subspan(kExif.size())) : kUpright;
}

int tiff_orientation(std::span<const std::byte> tiff) {
  constexpr std::array<char, 4> kLittle{'I', 'I', 42, 0};
  constexpr std::array<char, 4> kBig{'M', 'M', 0, 42};
  const bool is_big_endian = starts_with(tiff, kBig);
  if (!is_big_endian && !starts_with(tiff, kLittle)) return kUpright;

  const TiffNumbers numbers(tiff, is_big_endian);
  const auto directory = numbers.at(4, 4);
  if (!directory) return kUpright;
  const auto entry_count = numbers.at(*directory, 2);
  if (!entry_count) return kUpright;
  for (std::size_t i = 0; i < *entry_count; ++i) {
    const auto entry = *directory + 2 + i * kEntryBytes;
    const auto tag = numbers.at(entry, 2);
    if (!tag) return kUpright;
    if (*tag != kOrientationTag) continue;
    const auto value = numbers.at(entry + 8, 2);
    const bool is_valid = numbers.at(entry + 2, 2) == kTypeShort && numbers.at(entry + 4, 4) == 1U && value &&
                          *value >= 1 && *value <= 8;
    return is_valid ? static_cast<int>(*value) : kUpright;
  }
  return kUpright;
}

}  // namespace ssd
