// The headers of a baseline JPEG whose components all lie in one scan (ITU-T T.81, Annex B): what the decoder
// of rectangles has to know. Pure; reads nothing outside the bytes, whatever they hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ssd {

inline constexpr int kBlockSide = 8;  // pixels
inline constexpr std::size_t kBlockSize = 64;
inline constexpr std::size_t kMostComponents = 4;

struct JpegComponent {
  unsigned id = 0;
  int horizontal = 1;  // sampling factors, 1 to 4
  int vertical = 1;
  unsigned quantisation = 0;  // number of the table, 0 to 3
  unsigned dc_table = 0;
  unsigned ac_table = 0;
};

// A Huffman table as it is in the file.
struct HuffmanSpec {
  std::array<std::uint8_t, 17> counts{};  // codes of each length from 1 to 16; all 0: no such table
  std::array<std::uint8_t, 256> symbols{};
};

struct JpegHeaders {
  int width = 0;  // pixels
  int height = 0;
  std::size_t size_place = 0;  // of the height in the bytes; the width follows. 16 bits each, big-endian
  std::size_t component_count = 0;
  std::array<JpegComponent, kMostComponents> components{};
  int restart_interval = 0;  // MCUs; 0: none
  bool has_jfif = false;
  std::optional<unsigned> adobe_transform;
  std::array<std::array<std::uint16_t, kBlockSize>, 4>
      quantisation{};  // in zigzag order; all 0: no such table
  std::array<HuffmanSpec, 4> dc{}, ac{};

  // The grid of MCUs.
  int mcu_width = 0;  // pixels
  int mcu_height = 0;
  int columns() const { return (width + mcu_width - 1) / mcu_width; }
  int rows() const { return (height + mcu_height - 1) / mcu_height; }
  bool is_subsampled() const { return mcu_width > kBlockSide || mcu_height > kBlockSide; }
};

// headers: the bytes from the file's first to the last before the entropy-coded data. False where they are
// anything else than the headers of such a file.
bool read_jpeg_headers(std::span<const std::byte> bytes, JpegHeaders& headers);

}  // namespace ssd
