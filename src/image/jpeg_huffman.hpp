// Entropy decoding of the blocks of a baseline JPEG (ITU-T T.81, Annex F.2), for jpeg_segments.cpp alone: the
// next code's length, run and value in one look, and bits read eight bytes at a time.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/vector_clones.hpp"
#include "image/jpeg_headers.hpp"

namespace ssd {

// The bits of one restart segment, most significant first, from bytes without stuffing (unstuffed()). A plain
// value, so that it can live in registers. No bound is looked at: see kBytesBehindSegment.
struct SegmentBits {
  const std::uint8_t* at;
  std::uint64_t bits = 0;  // from the top; below the ones at hand they are those that follow, or 0
  int count = 0;           // bits at hand
};

// At least 56 bits are at hand afterwards.
SSD_INLINE void refill(SegmentBits& in) {
  std::uint64_t word;
  std::memcpy(&word, in.at, sizeof word);
  if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
  in.bits |= word >> in.count;
  in.at += (63 - in.count) >> 3;
  in.count |= 56;
}

SSD_INLINE void skip(SegmentBits& in, unsigned count) {
  in.bits <<= count;
  in.count -= static_cast<int>(count);
}

// The most that is read behind the bytes of a segment before that is noticed: a block of 64 codes with
// values, and the bytes at hand.
inline constexpr std::size_t kBytesBehindSegment = 256;

// Copies the entropy-coded bytes [begin, end) of a segment without the zeros that are stuffed behind bytes of
// 0xFF, up to the first marker, and kBytesBehindSegment zeros; out must have room for that. Returns their
// number, without the zeros.
std::size_t copy_unstuffed(const std::uint8_t* begin, const std::uint8_t* end, std::uint8_t* out);

// What the next bits begin with: a code and the bits of the value that it announces.
struct HuffmanSymbol {
  std::uint8_t bits = 0;       // of both; 0: no code
  std::uint8_t code_bits = 0;  // of the code
  std::uint8_t run = 0;        // zero coefficients before the value
  std::uint8_t value_bits = 0;
};

class HuffmanDecoder {
 public:
  // Most bits that an 8-bit baseline file's values have; with the longest code, 16 bits, two symbols fit the
  // bits at hand.
  static constexpr unsigned kMostDcBits = 11, kMostAcBits = 10;

  // False for a table that is none: no codes, too many, or values of more bits.
  bool make(const HuffmanSpec& spec, unsigned most_value_bits);

  SSD_INLINE HuffmanSymbol find(std::uint64_t bits) const {
    const HuffmanSymbol symbol = short_codes_[bits >> (64 - kShortBits)];
    return symbol.bits != 0 ? symbol : find_long(bits);
  }

 private:
  static constexpr unsigned kShortBits = 10;

  HuffmanSymbol find_long(std::uint64_t bits) const;
  HuffmanSymbol symbol_of(std::size_t place, unsigned code_bits) const;

  std::array<HuffmanSymbol, std::size_t{1} << kShortBits> short_codes_{};
  // Of each length: the first code that is longer, brought to 16 bits; what to add to a code for its place.
  std::array<std::uint32_t, 17> ends_{};
  std::array<std::int32_t, 17> places_{};
  std::array<std::uint8_t, 256> symbols_{};
};

// The value whose bits follow the code at the head of `bits`: T.81, F.1.2.1, "EXTEND".
SSD_INLINE int value_of(std::uint64_t bits, HuffmanSymbol symbol) {
  const std::uint64_t rest = bits << symbol.code_bits;
  const int value = static_cast<int>(rest >> 1 >> (63 - symbol.value_bits));
  const int is_negative = static_cast<int>(~static_cast<std::int64_t>(rest) >> 63);  // all ones, or 0
  return value + (is_negative & (1 - (1 << symbol.value_bits)));
}

// Row * 8 + column of each coefficient in the file's zigzag order: T.81, figure A.6.
inline constexpr std::array<std::uint8_t, kBlockSize> kZigzag = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
// Row * 16 + column.
inline constexpr auto kZigzagOfPairs = [] {
  auto places = kZigzag;
  for (auto& place : places)
    place = static_cast<std::uint8_t>(place / kBlockSide * 2 * kBlockSide + place % kBlockSide);
  return places;
}();

// Coefficients of two blocks, one beside the other in each row.
inline constexpr std::size_t kBlockPairSize = 2 * kBlockSize;

struct ComponentTables {
  const HuffmanDecoder* dc;
  const HuffmanDecoder* ac;
};

// Reads the next block into one side of a pair, all zeros before; not yet times the quantisation steps.
// Returns the place of the last coefficient in zigzag order, -1 for damaged data.
SSD_INLINE int read_block(SegmentBits& in, const ComponentTables& tables, int& prediction,
                          std::int16_t* side) {
  refill(in);
  HuffmanSymbol symbol = tables.dc->find(in.bits);
  if (symbol.bits == 0) [[unlikely]]
    return -1;
  prediction += value_of(in.bits, symbol);
  skip(in, symbol.bits);
  side[0] = static_cast<std::int16_t>(prediction);
  unsigned place = 0;
  // False at the end of the block. Two symbols fit the bits at hand.
  const auto read_next = [&] {
    symbol = tables.ac->find(in.bits);
    const int value = value_of(in.bits, symbol);
    skip(in, symbol.bits);
    const unsigned next = place + symbol.run + 1U;
    if (symbol.value_bits == 0) [[unlikely]] {  // the end, sixteen zeros, or no code
      if (symbol.run != 15) return false;
    } else {
      if (next >= kBlockSize) [[unlikely]]
        return false;
      side[kZigzagOfPairs[next]] = static_cast<std::int16_t>(value);
    }
    place = next;
    return place < kBlockSize - 1;
  };
  if (read_next()) {
    do {
      refill(in);
    } while (read_next() && read_next());
  }
  const bool is_damaged = symbol.bits == 0 || (symbol.value_bits != 0 && place < kBlockSize - 1);
  return is_damaged ? -1 : static_cast<int>(place < kBlockSize ? place : kBlockSize - 1);
}

}  // namespace ssd
