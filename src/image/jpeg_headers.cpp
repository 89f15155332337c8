#include "image/jpeg_headers.hpp"

#include <algorithm>
#include <cstring>

namespace ssd {
namespace {

constexpr unsigned kSof0 = 0xC0, kSof1 = 0xC1, kDht = 0xC4, kJpg = 0xC8, kDac = 0xCC, kSof15 = 0xCF;
constexpr unsigned kSos = 0xDA, kDqt = 0xDB, kDri = 0xDD, kApp0 = 0xE0, kApp14 = 0xEE;

// Numbers one after the other; 0 beyond the end, which `failed` then tells.
class Numbers {
 public:
  explicit Numbers(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t left() const { return bytes_.size() - at_; }
  bool failed() const { return failed_; }
  unsigned u8() {
    failed_ |= left() == 0;
    return failed_ ? 0 : std::to_integer<unsigned>(bytes_[at_++]);
  }
  unsigned u16() {
    const unsigned high = u8();
    return high << 8 | u8();
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

bool starts_with(std::span<const std::byte> data, const char* text, std::size_t size) {
  return data.size() >= size && std::memcmp(data.data(), text, size) == 0;
}

bool read_frame(Numbers data, JpegHeaders& headers) {
  if (headers.component_count != 0 || data.u8() != 8) return false;
  headers.height = static_cast<int>(data.u16());
  headers.width = static_cast<int>(data.u16());
  headers.component_count = data.u8();
  if (headers.width == 0 || headers.height == 0) return false;
  if (headers.component_count == 0 || headers.component_count > headers.components.size()) return false;
  int horizontal = 1, vertical = 1;  // the largest
  for (std::size_t i = 0; i < headers.component_count; ++i) {
    auto& component = headers.components[i];
    component.id = data.u8();
    const unsigned factors = data.u8();
    component.horizontal = static_cast<int>(factors >> 4);
    component.vertical = static_cast<int>(factors & 15);
    component.quantisation = data.u8();
    if (component.horizontal < 1 || component.horizontal > 4 || component.vertical < 1 ||
        component.vertical > 4 || component.quantisation > 3)
      return false;
    horizontal = std::max(horizontal, component.horizontal);
    vertical = std::max(vertical, component.vertical);
  }
  if (headers.component_count == 1) horizontal = vertical = 1;  // T.81, A.2.2: an MCU is one block
  headers.mcu_width = horizontal * kBlockSide;
  headers.mcu_height = vertical * kBlockSide;
  return !data.failed() && data.left() == 0;
}

bool read_quantisation(Numbers data, JpegHeaders& headers) {
  while (data.left() > 0) {
    const unsigned what = data.u8();
    if (what >> 4 > 1 || (what & 15) > 3) return false;
    for (auto& step : headers.quantisation[what & 15])
      step = static_cast<std::uint16_t>(what >> 4 == 1 ? data.u16() : data.u8());
  }
  return !data.failed();
}

bool read_huffman(Numbers data, JpegHeaders& headers) {
  while (data.left() > 0) {
    const unsigned what = data.u8();
    if (what >> 4 > 1 || (what & 15) > 3) return false;
    auto& table = what >> 4 == 0 ? headers.dc[what & 15] : headers.ac[what & 15];
    std::size_t total = 0;
    for (std::size_t length = 1; length <= 16; ++length)
      total += table.counts[length] = static_cast<std::uint8_t>(data.u8());
    if (total > table.symbols.size()) return false;
    for (std::size_t i = 0; i < total; ++i) table.symbols[i] = static_cast<std::uint8_t>(data.u8());
  }
  return !data.failed();
}

// All components, in the frame's order, and all coefficients.
bool read_scan(Numbers data, JpegHeaders& headers) {
  if (headers.component_count == 0 || data.u8() != headers.component_count) return false;
  for (std::size_t i = 0; i < headers.component_count; ++i) {
    auto& component = headers.components[i];
    if (data.u8() != component.id) return false;
    const unsigned tables = data.u8();
    component.dc_table = tables >> 4;
    component.ac_table = tables & 15;
    if (component.dc_table > 3 || component.ac_table > 3) return false;
  }
  return data.u8() == 0 && data.u8() == 63 && data.u8() == 0 && !data.failed() && data.left() == 0;
}

bool is_frame(unsigned marker) {
  return kSof0 <= marker && marker <= kSof15 && marker != kDht && marker != kJpg && marker != kDac;
}

bool read_segment(unsigned marker, std::span<const std::byte> data, JpegHeaders& headers) {
  if (is_frame(marker)) return (marker == kSof0 || marker == kSof1) && read_frame(Numbers(data), headers);
  if (marker == kDqt) return read_quantisation(Numbers(data), headers);
  if (marker == kDht) return read_huffman(Numbers(data), headers);
  if (marker == kSos) return read_scan(Numbers(data), headers);
  if (marker == kDri) headers.restart_interval = static_cast<int>(Numbers(data).u16());
  if (marker == kApp0 && starts_with(data, "JFIF", 5)) headers.has_jfif = true;
  if (marker == kApp14 && starts_with(data, "Adobe", 5) && data.size() >= 12)
    headers.adobe_transform = std::to_integer<unsigned>(data[11]);
  return true;
}

}  // namespace

bool read_jpeg_headers(std::span<const std::byte> bytes, JpegHeaders& headers) {
  headers = {};
  const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(bytes[at]); };
  for (std::size_t at = 2; at + 4 <= bytes.size();) {
    const unsigned marker = byte(at + 1);
    if (byte(at) != 0xFF) return false;
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    const std::size_t length = byte(at + 2) << 8 | byte(at + 3);
    if (length < 2 || length > bytes.size() - at - 2) return false;
    if (is_frame(marker)) headers.size_place = at + 5;
    if (!read_segment(marker, bytes.subspan(at + 4, length - 2), headers)) return false;
    at += 2 + length;
    if (marker == kSos) return at == bytes.size();
  }
  return false;
}

}  // namespace ssd
