// From coefficients to RGB, two times eight by eight pixels at once, for jpeg_segments.cpp alone. Every
// number is that of libjpeg-turbo's default ("islow") transform and of its colour conversion, so that pixels
// are the same.
//
// Vectors are GCC's: sixteen 32-bit lanes, made of what the processor has; eight for each of the two blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/vector_clones.hpp"
#include "image/jpeg_headers.hpp"

namespace ssd {

typedef std::int32_t Ints __attribute__((vector_size(64)));
typedef std::uint32_t Words __attribute__((vector_size(64)));  // wraps around, whatever damaged data hold
typedef std::uint16_t Shorts __attribute__((vector_size(32)));
typedef std::int16_t SignedShorts __attribute__((vector_size(32)));
typedef std::uint8_t Bytes __attribute__((vector_size(64)));

// libjpeg-turbo works with 16 bits in places. Only damaged data need more, and they shall look as there.
SSD_INLINE Words wrapped(Words value) {
  return reinterpret_cast<Words>(reinterpret_cast<Ints>(value << 16) >> 16);
}
SSD_INLINE Words between(Words value, int least, int most) {
  auto level = reinterpret_cast<Ints>(value);
  level = level < least ? Ints{} + least : level;
  level = level > most ? Ints{} + most : level;
  return reinterpret_cast<Words>(level);
}

template <int kBits>
SSD_INLINE Words rounded_shift(Words value) {
  return reinterpret_cast<Words>(reinterpret_cast<Ints>(value + (1U << (kBits - 1))) >> kBits);
}

// The one-dimensional inverse transform of Loeffler, Ligtenberg and Moschytz, "Practical Fast 1-D DCT
// Algorithms with 11 Multiplications", ICASSP 1989, in fixed point with 13 bits behind the point, without its
// factor of 1/sqrt(8). Lanes are independent of each other. kIsSparse: v[4] to v[7] are 0.
template <int kShift, bool kIsSparse>
SSD_INLINE void inverse_transform(Words (&v)[8]) {
  constexpr auto fixed = [](double value) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(value * 8192 + (value < 0 ? -0.5 : 0.5)));
  };
  constexpr Words kZero{};
  const Words v4 = kIsSparse ? kZero : v[4], v5 = kIsSparse ? kZero : v[5];
  const Words v6 = kIsSparse ? kZero : v[6], v7 = kIsSparse ? kZero : v[7];

  const Words even = (v[2] + v6) * fixed(0.541196100);
  const Words low = even - v6 * fixed(1.847759065), high = even + v[2] * fixed(0.765366865);
  const Words sum = wrapped(v[0] + v4) << 13, difference = wrapped(v[0] - v4) << 13;
  const Words e0 = sum + high, e3 = sum - high, e1 = difference + low, e2 = difference - low;

  const Words a = wrapped(v7 + v[3]), b = wrapped(v5 + v[1]);
  const Words odd = (a + b) * fixed(1.175875602);
  const Words z1 = (v7 + v[1]) * fixed(-0.899976223), z2 = (v5 + v[3]) * fixed(-2.562915447);
  const Words z3 = a * fixed(-1.961570560) + odd, z4 = b * fixed(-0.390180644) + odd;
  const Words o3 = v7 * fixed(0.298631336) + z1 + z3, o2 = v5 * fixed(2.053119869) + z2 + z4;
  const Words o1 = v[3] * fixed(3.072711026) + z2 + z3, o0 = v[1] * fixed(1.501321110) + z1 + z4;

  v[0] = rounded_shift<kShift>(e0 + o0);
  v[1] = rounded_shift<kShift>(e1 + o1);
  v[2] = rounded_shift<kShift>(e2 + o2);
  v[3] = rounded_shift<kShift>(e3 + o3);
  v[4] = rounded_shift<kShift>(e3 - o3);
  v[5] = rounded_shift<kShift>(e2 - o2);
  v[6] = rounded_shift<kShift>(e1 - o1);
  v[7] = rounded_shift<kShift>(e0 - o0);
}

// Lanes of a and b in turn, by ones, twos and fours, in each quarter or half of a vector.
SSD_INLINE Words low_words(Words a, Words b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
}
SSD_INLINE Words high_words(Words a, Words b) {
  return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
}
SSD_INLINE Words low_pairs(Words a, Words b) {
  return __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
}
SSD_INLINE Words high_pairs(Words a, Words b) {
  return __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
}
SSD_INLINE Words low_fours(Words a, Words b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
}
SSD_INLINE Words high_fours(Words a, Words b) {
  return __builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
}

// Each block's eight by eight lanes.
SSD_INLINE void transpose(Words (&v)[8]) {
  Words a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = low_words(v[i], v[i + 1]);
    a[i + 1] = high_words(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    b[i] = low_pairs(a[i], a[i + 2]);
    b[i + 1] = high_pairs(a[i], a[i + 2]);
    b[i + 2] = low_pairs(a[i + 1], a[i + 3]);
    b[i + 3] = high_pairs(a[i + 1], a[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = low_fours(b[i], b[i + 4]);
    v[i + 4] = high_fours(b[i], b[i + 4]);
  }
}

SSD_INLINE Words clamped(Words value) {
  return between(value, 0, 255);
}

// Quantisation steps of a row, once for each of the two blocks.
using StepRows = std::array<Shorts, kBlockSide>;

template <bool kIsSparse>
SSD_INLINE void transform_blocks(const std::int16_t* pair, const StepRows& steps, Words (&columns)[8],
                                 Words& beyond) {
  for (std::size_t row = 0; row < (kIsSparse ? 4 : 8); ++row) {
    Shorts coefficients;
    std::memcpy(&coefficients, pair + row * 2 * kBlockSide, sizeof coefficients);
    columns[row] = reinterpret_cast<Words>(
        __builtin_convertvector(reinterpret_cast<SignedShorts>(coefficients * steps[row]), Ints));
  }
  beyond |= reinterpret_cast<Words>(columns[0] + 8191U > Words{} + 16382U);
  inverse_transform<11, kIsSparse>(columns);  // 2 bits stay behind the point
  for (Words& row : columns) row = between(row, -32768, 32767);
  transpose(columns);
  inverse_transform<18, kIsSparse>(columns);  // 13 + 2, and 3 for the factor of 1/8 of both dimensions
}

// The levels, 0 to 255, of two blocks as columns. last: the larger of the places of their last coefficients,
// in zigzag order.
SSD_INLINE void samples_of_blocks(const std::int16_t* pair, const StepRows& steps, int last,
                                  Words (&columns)[8], Words& beyond) {
  constexpr int kLastOfFourDiagonals = 9;  // they lie in four rows and four columns
  if (last <= kLastOfFourDiagonals) {
    transform_blocks<true>(pair, steps, columns, beyond);
  } else {
    transform_blocks<false>(pair, steps, columns, beyond);
  }
  for (Words& column : columns) column = clamped(column + 128);
}

// Bytes that write_pixels writes behind each row of 24.
inline constexpr std::size_t kBytesBehindRow = 4;

// Two times eight rows of eight R G B pixels, rows row_bytes apart, from the columns of Y, Cb and Cr:
// JFIF 1.02, with 16 bits behind the point.
SSD_INLINE void write_pixels(const Words (&y)[8], const Words (&cb)[8], const Words (&cr)[8],
                             std::uint8_t* first, std::uint8_t* second, std::size_t row_bytes) {
  constexpr auto fixed = [](double value) { return static_cast<std::uint32_t>(value * 65536 + 0.5); };
  Words pixels[8];  // R, G, B and 0 in a word
  for (int i = 0; i < 8; ++i) {
    const Words blue = cb[i] - 128, red = cr[i] - 128;
    const Words r = clamped(y[i] + rounded_shift<16>(red * fixed(1.40200)));
    const Words g = clamped(y[i] + rounded_shift<16>(0U - blue * fixed(0.34414) - red * fixed(0.71414)));
    const Words b = clamped(y[i] + rounded_shift<16>(blue * fixed(1.77200)));
    pixels[i] = r | g << 8 | b << 16;
  }
  transpose(pixels);
  for (int row = 0; row < 8; ++row, first += row_bytes, second += row_bytes) {
    const Bytes words = reinterpret_cast<Bytes>(pixels[row]);
    const Bytes bytes = __builtin_shufflevector(  // without each fourth, which go behind the others
        words, words, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15, 16, 17, 18, 20, 21, 22, 24, 25,
        26, 28, 29, 30, 19, 23, 27, 31, 32, 33, 34, 36, 37, 38, 40, 41, 42, 44, 45, 46, 35, 39, 43, 47, 48,
        49, 50, 52, 53, 54, 56, 57, 58, 60, 61, 62, 51, 55, 59, 63);
    const auto* from = reinterpret_cast<const std::uint8_t*>(&bytes);
    std::memcpy(first, from, 16);
    std::memcpy(first + 12, from + 16, 16);
    std::memcpy(second, from + 32, 16);
    std::memcpy(second + 12, from + 48, 16);
  }
}

}  // namespace ssd
