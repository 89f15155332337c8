// The two inner loops of SegmentDecoder: from the bits of a restart segment to coefficients, and from
// coefficients to RGB pixels. For jpeg_segments.cpp alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "image/jpeg_headers.hpp"
#include "image/jpeg_huffman.hpp"

namespace ssd {

// Y, or Y, Cb and Cr.
inline constexpr std::size_t kSegmentComponents = 3;

// The blocks of an MCU in the file's order: T.81, A.2.3.
struct McuBlock {
  std::uint8_t component;
  std::uint8_t x, y;  // place in the MCU, in blocks
};
struct McuLayout {
  std::size_t block_count = 0;
  std::array<McuBlock, 6> blocks{};
};

using SegmentTables = std::array<ComponentTables, kSegmentComponents>;

// Quantisation steps of a component, row by row.
using QuantisationSteps = std::array<std::uint16_t, kBlockSize>;

// Bytes that write_mcus writes behind each row.
inline constexpr std::size_t kBytesBehindRow = 4;

using SegmentSteps = std::array<QuantisationSteps, kSegmentComponents>;

// Reads the first mcu_count MCUs of a segment into one side of pairs of blocks, which must be all zeros.
// bytes: byte_count of them, without stuffing, and kBytesBehindSegment behind them. is_whole: the segment has
// no more MCUs. last: of each pair of blocks the larger of the places of their last coefficients, in zigzag
// order; raised, so that the other side's places stay. False for damaged data.
bool read_mcus(const std::uint8_t* bytes, std::size_t byte_count, bool is_whole, const SegmentTables& tables,
               const McuLayout& layout, std::size_t mcu_count, std::int16_t* side, std::uint8_t* last);

// Writes the pixels of `count` MCUs of Y, Cb and Cr without subsampling that lie one beside the other in two
// rows of MCUs. pairs, last: as read_mcus fills them. first, second: the upper left pixels of the two rows of
// MCUs, rows of R G B row_bytes apart. Every number is that of libjpeg-turbo's default ("islow") transform
// and of its colour conversion. False where coefficients are so large that libjpeg is to be asked.
bool write_mcus(const std::int16_t* pairs, const std::uint8_t* last, const SegmentSteps& steps, int count,
                std::uint8_t* first, std::uint8_t* second, std::size_t row_bytes);

// A component's levels. first, second: the upper left ones of two rows of MCUs.
struct LevelRows {
  std::uint8_t* first = nullptr;
  std::uint8_t* second = nullptr;
  std::size_t row_bytes = 0;
  std::size_t mcu_width = 0;  // levels
};

// The same for any layout, with the levels of each component by themselves.
bool write_levels(const std::int16_t* pairs, const std::uint8_t* last, const SegmentSteps& steps,
                  const McuLayout& layout, std::size_t count,
                  const std::array<LevelRows, kSegmentComponents>& components);

}  // namespace ssd
