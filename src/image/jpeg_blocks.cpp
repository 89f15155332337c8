#include "image/jpeg_blocks.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/jpeg_blocks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "image/jpeg_colors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace ssd::HWY_NAMESPACE {

// A vector holds a row (or column) of eight 16-bit numbers of one block, or of both blocks of a pair.
using Shorts = hn::CappedTag<std::int16_t, 2 * kBlockSide>;
using Ints = hn::Repartition<std::int32_t, Shorts>;
using Bytes = hn::Repartition<std::uint8_t, Shorts>;
using ShortVector = hn::Vec<Shorts>;
using IntVector = hn::Vec<Ints>;
constexpr std::size_t kBlocksInVector = hn::MaxLanes(Shorts()) / kBlockSide;

// Eight numbers of each block in 32 bits: the first four, the last four. The constructors that the compiler
// would make are not compiled for the vector unit, and cannot call NEON's.
struct Halves {
  IntVector low, high;
  HWY_INLINE Halves() {}
  HWY_INLINE Halves(IntVector first, IntVector last) : low(first), high(last) {}
};
HWY_INLINE Halves operator+(Halves a, Halves b) {
  return {hn::Add(a.low, b.low), hn::Add(a.high, b.high)};
}
HWY_INLINE Halves operator-(Halves a, Halves b) {
  return {hn::Sub(a.low, b.low), hn::Sub(a.high, b.high)};
}

// Two rows, ready to be multiplied.
struct RowPair {
  ShortVector low, high;
};
HWY_INLINE RowPair pair_of(ShortVector a, ShortVector b) {
  return {hn::InterleaveLower(Shorts(), a, b), hn::InterleaveUpper(Shorts(), a, b)};
}

constexpr std::int32_t fixed(double value) {  // 13 bits behind the point
  return static_cast<std::int32_t>(value * 8192 + (value < 0 ? -0.5 : 0.5));
}

// a * kFirst + b * kSecond of the rows a and b.
template <std::int32_t kFirst, std::int32_t kSecond>
HWY_INLINE Halves weighted(RowPair rows) {
  static_assert(kFirst == static_cast<std::int16_t>(kFirst) && kSecond == static_cast<std::int16_t>(kSecond));
  const ShortVector factors = factors_in_turn(Shorts(), kFirst, kSecond);
  return {sums_of_products(Shorts(), rows.low, factors), sums_of_products(Shorts(), rows.high, factors)};
}

// Times 8192, in 32 bits, with half a unit of the result's last place after a shift by kShift.
template <int kShift>
HWY_INLINE Halves raised(ShortVector value) {
  const IntVector half = hn::Set(Ints(), std::int32_t{1} << (kShift - 1));
  const auto raise = [&](ShortVector upper) {
    return hn::Add(hn::ShiftRight<3>(hn::BitCast(Ints(), upper)), half);
  };
  const RowPair rows = pair_of(hn::Zero(Shorts()), value);
  return {raise(rows.low), raise(rows.high)};
}

// libjpeg-turbo goes back to 16 bits with saturation.
template <int kShift>
HWY_INLINE ShortVector lowered(Halves value) {
  return hn::ReorderDemote2To(Shorts(), hn::ShiftRight<kShift>(value.low),
                              hn::ShiftRight<kShift>(value.high));
}

// The one-dimensional inverse transform of Loeffler, Ligtenberg and Moschytz, "Practical Fast 1-D DCT
// Algorithms with 11 Multiplications", ICASSP 1989, in fixed point with 13 bits behind the point, without its
// factor of 1/sqrt(8). Its multiplications by constants that follow one another are taken together, which
// gives the same numbers in 32 bits that wrap around. 16-bit sums wrap around, as libjpeg-turbo's do. Lanes
// are independent of each other. kIsSparse: v[4] to v[7] are 0 and not read.
template <int kShift, bool kIsSparse>
HWY_INLINE void inverse_transform(ShortVector (&v)[kBlockSide]) {
  constexpr std::int32_t k0_298 = fixed(0.298631336), k0_390 = fixed(0.390180644);
  constexpr std::int32_t k0_541 = fixed(0.541196100), k0_765 = fixed(0.765366865);
  constexpr std::int32_t k0_899 = fixed(0.899976223), k1_175 = fixed(1.175875602);
  constexpr std::int32_t k1_501 = fixed(1.501321110), k1_847 = fixed(1.847759065);
  constexpr std::int32_t k1_961 = fixed(1.961570560), k2_053 = fixed(2.053119869);
  constexpr std::int32_t k2_562 = fixed(2.562915447), k3_072 = fixed(3.072711026);

  Halves e0, e1, e2, e3, o0, o1, o2, o3;
  if constexpr (kIsSparse) {
    const Halves middle = raised<kShift>(v[0]);
    const RowPair second = pair_of(v[2], hn::Zero(Shorts()));
    const Halves high = weighted<k0_541 + k0_765, 0>(second), low = weighted<k0_541, 0>(second);
    e0 = middle + high, e1 = middle + low, e2 = middle - low, e3 = middle - high;
    const RowPair odd = pair_of(v[1], v[3]);
    o0 = weighted<k1_501 - k0_899 + k1_175 - k0_390, k1_175>(odd);
    o1 = weighted<k1_175, k3_072 - k2_562 + k1_175 - k1_961>(odd);
    o2 = weighted<k1_175 - k0_390, k1_175 - k2_562>(odd);
    o3 = weighted<k1_175 - k0_899, k1_175 - k1_961>(odd);
  } else {
    const RowPair second = pair_of(v[2], v[6]);
    const Halves high = weighted<k0_541 + k0_765, k0_541>(second);
    const Halves low = weighted<k0_541, k0_541 - k1_847>(second);
    const Halves sum = raised<kShift>(hn::Add(v[0], v[4])), difference = raised<kShift>(hn::Sub(v[0], v[4]));
    e0 = sum + high, e1 = difference + low, e2 = difference - low, e3 = sum - high;
    const RowPair both = pair_of(hn::Add(v[7], v[3]), hn::Add(v[5], v[1]));
    const Halves z3 = weighted<k1_175 - k1_961, k1_175>(both), z4 = weighted<k1_175, k1_175 - k0_390>(both);
    const RowPair outer = pair_of(v[7], v[1]), inner = pair_of(v[5], v[3]);
    o3 = weighted<k0_298 - k0_899, -k0_899>(outer) + z3;
    o0 = weighted<-k0_899, k1_501 - k0_899>(outer) + z4;
    o2 = weighted<k2_053 - k2_562, -k2_562>(inner) + z4;
    o1 = weighted<-k2_562, k3_072 - k2_562>(inner) + z3;
  }
  v[0] = lowered<kShift>(e0 + o0);
  v[1] = lowered<kShift>(e1 + o1);
  v[2] = lowered<kShift>(e2 + o2);
  v[3] = lowered<kShift>(e3 + o3);
  v[4] = lowered<kShift>(e3 - o3);
  v[5] = lowered<kShift>(e2 - o2);
  v[6] = lowered<kShift>(e1 - o1);
  v[7] = lowered<kShift>(e0 - o0);
}

// Lanes of a and b in turn, by ones, twos and fours of 16 bits, within each block.
template <class Lane>
HWY_INLINE ShortVector low_in_turn(ShortVector a, ShortVector b) {
  const hn::Repartition<Lane, Shorts> lanes;
  return hn::BitCast(Shorts(), hn::InterleaveLower(lanes, hn::BitCast(lanes, a), hn::BitCast(lanes, b)));
}
template <class Lane>
HWY_INLINE ShortVector high_in_turn(ShortVector a, ShortVector b) {
  const hn::Repartition<Lane, Shorts> lanes;
  return hn::BitCast(Shorts(), hn::InterleaveUpper(lanes, hn::BitCast(lanes, a), hn::BitCast(lanes, b)));
}

// Each block's eight by eight lanes.
HWY_INLINE void transpose(ShortVector (&v)[kBlockSide]) {
  ShortVector a[kBlockSide], b[kBlockSide];
  for (int i = 0; i < 8; i += 2) {
    a[i] = low_in_turn<std::int16_t>(v[i], v[i + 1]);
    a[i + 1] = high_in_turn<std::int16_t>(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    b[i] = low_in_turn<std::int32_t>(a[i], a[i + 2]);
    b[i + 1] = high_in_turn<std::int32_t>(a[i], a[i + 2]);
    b[i + 2] = low_in_turn<std::int32_t>(a[i + 1], a[i + 3]);
    b[i + 3] = high_in_turn<std::int32_t>(a[i + 1], a[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    v[2 * i] = low_in_turn<std::int64_t>(b[i], b[i + 4]);
    v[2 * i + 1] = high_in_turn<std::int64_t>(b[i], b[i + 4]);
  }
}

// What has been seen of a range.
struct Extremes {
  ShortVector least, most;
};

template <bool kIsSparse>
HWY_INLINE void transform_blocks(const std::int16_t* rows, const QuantisationSteps& steps,
                                 ShortVector (&columns)[kBlockSide], Extremes& first_rows) {
  for (std::size_t row = 0; row < (kIsSparse ? 4 : 8); ++row) {
    const auto step = hn::LoadDup128(hn::RebindToUnsigned<Shorts>(), steps.data() + row * kBlockSide);
    columns[row] = hn::Mul(hn::LoadU(Shorts(), rows + row * 2 * kBlockSide), hn::BitCast(Shorts(), step));
  }
  first_rows.least = hn::Min(first_rows.least, columns[0]);
  first_rows.most = hn::Max(first_rows.most, columns[0]);
  inverse_transform<11, kIsSparse>(columns);  // 2 bits stay behind the point
  transpose(columns);
  inverse_transform<18, kIsSparse>(columns);  // 13 + 2, and 3 for the factor of 1/8 of both dimensions
}

// Blocks of levels minus 128, as columns. last: the place of their last coefficient, in zigzag order.
HWY_INLINE void samples_of_blocks(const std::int16_t* rows, const QuantisationSteps& steps, int last,
                                  ShortVector (&columns)[kBlockSide], Extremes& first_rows) {
  constexpr int kLastOfFourDiagonals = 9;  // they lie in four rows and four columns
  if (last <= kLastOfFourDiagonals) {
    transform_blocks<true>(rows, steps, columns, first_rows);
  } else {
    transform_blocks<false>(rows, steps, columns, first_rows);
  }
  const auto least = hn::Set(Shorts(), std::int16_t{-128}), most = hn::Set(Shorts(), std::int16_t{127});
  for (auto& column : columns) column = hn::Min(hn::Max(column, least), most);
}

HWY_INLINE ShortVector clamped(ShortVector level) {
  return hn::Min(hn::Max(level, hn::Zero(Shorts())), hn::Set(Shorts(), std::int16_t{255}));
}

// Eight rows of eight R G B pixels of each block, from the columns of Y, Cb and Cr minus 128. blocks: their
// upper left pixels.
HWY_INLINE void write_pixels(const ShortVector (&y)[kBlockSide], const ShortVector (&cb)[kBlockSide],
                             const ShortVector (&cr)[kBlockSide], std::uint8_t* const* blocks,
                             std::size_t row_bytes) {
  // Two words of R G and B 0 for each pixel; of each four rows a vector for each column.
  ShortVector upper[kBlockSide], lower[kBlockSide];
  for (std::size_t i = 0; i < kBlockSide; ++i) {
    const auto rgb = rgb_of(Shorts(), hn::Add(y[i], hn::Set(Shorts(), std::int16_t{128})), cb[i], cr[i]);
    const ShortVector red_green = hn::Or(clamped(rgb.red), hn::ShiftLeft<8>(clamped(rgb.green)));
    const ShortVector blue = clamped(rgb.blue);
    upper[i] = hn::InterleaveLower(Shorts(), red_green, blue);
    lower[i] = hn::InterleaveUpper(Shorts(), red_green, blue);
  }
  alignas(16) static constexpr std::uint8_t kWithoutFourth[16] = {0,  1,  2,  4,  5, 6, 8,  9,
                                                                  10, 12, 13, 14, 3, 7, 11, 15};
  const auto order = hn::LoadDup128(Bytes(), kWithoutFourth);
  for (std::size_t quarter = 0; quarter < 4; ++quarter) {
    const ShortVector* v = (quarter < 2 ? upper : lower) + quarter % 2 * 4;  // of four columns
    const ShortVector a = low_in_turn<std::int32_t>(v[0], v[1]), b = high_in_turn<std::int32_t>(v[0], v[1]);
    const ShortVector c = low_in_turn<std::int32_t>(v[2], v[3]), d = high_in_turn<std::int32_t>(v[2], v[3]);
    const ShortVector rows[] = {low_in_turn<std::int64_t>(a, c), high_in_turn<std::int64_t>(a, c),
                                low_in_turn<std::int64_t>(b, d), high_in_turn<std::int64_t>(b, d)};
    for (std::size_t row = 0; row < 4; ++row) {
      const std::size_t at = (quarter / 2 * 4 + row) * row_bytes + quarter % 2 * 12;
      const auto pixels = hn::TableLookupBytes(hn::BitCast(Bytes(), rows[row]), order);
      store_blocks(Bytes(), pixels, blocks[0] + at, blocks[kBlocksInVector - 1] + at);
    }
  }
}

// Beyond, libjpeg-turbo's shortcut for columns without other coefficients differs from its transform.
HWY_INLINE bool are_small(const Extremes& first_rows) {
  const auto limit = hn::Set(Shorts(), std::int16_t{8191});
  return hn::AllFalse(Shorts(),
                      hn::Or(hn::Gt(first_rows.most, limit), hn::Lt(first_rows.least, hn::Neg(limit))));
}

bool write_all_mcus(const std::int16_t* pairs, const std::uint8_t* last, const SegmentSteps& steps, int count,
                    std::uint8_t* first, std::uint8_t* second, std::size_t row_bytes) {
  Extremes first_rows{hn::Zero(Shorts()), hn::Zero(Shorts())};
  for (int mcu = 0; mcu < count; ++mcu) {
    std::uint8_t* blocks[] = {first, second};
    for (std::size_t block = 0; block < 2; block += kBlocksInVector) {
      ShortVector samples[kSegmentComponents][kBlockSide];
      for (std::size_t c = 0; c < kSegmentComponents; ++c) {
        samples_of_blocks(pairs + c * kBlockPairSize + block * kBlockSide, steps[c], last[c], samples[c],
                          first_rows);
      }
      write_pixels(samples[0], samples[1], samples[2], blocks + block, row_bytes);
    }
    pairs += kSegmentComponents * kBlockPairSize;
    last += kSegmentComponents;
    first += kBlockSide * 3;
    second += kBlockSide * 3;
  }
  return are_small(first_rows);
}

bool write_all_levels(const std::int16_t* pairs, const std::uint8_t* last, const SegmentSteps& steps,
                      const McuLayout& layout, std::size_t count,
                      const std::array<LevelRows, kSegmentComponents>& components) {
  alignas(16) static constexpr std::uint8_t kLowerBytes[16] = {0, 2, 4, 6, 8, 10, 12, 14};
  const auto lower_bytes = hn::LoadDup128(Bytes(), kLowerBytes);
  const auto middle = hn::Set(Shorts(), std::int16_t{128});
  Extremes first_rows{hn::Zero(Shorts()), hn::Zero(Shorts())};
  for (std::size_t mcu = 0; mcu < count; ++mcu) {
    for (std::size_t i = 0; i < layout.block_count; ++i, pairs += kBlockPairSize, ++last) {
      const McuBlock& place = layout.blocks[i];
      const LevelRows& rows = components[place.component];
      const std::size_t at =
          mcu * rows.mcu_width + place.y * kBlockSide * rows.row_bytes + place.x * kBlockSide;
      std::uint8_t* blocks[] = {rows.first + at, rows.second + at};
      for (std::size_t block = 0; block < 2; block += kBlocksInVector) {
        ShortVector v[kBlockSide];
        samples_of_blocks(pairs + block * kBlockSide, steps[place.component], *last, v, first_rows);
        transpose(v);
        for (std::size_t row = 0; row < kBlockSide; ++row) {
          const auto levels =
              hn::TableLookupBytes(hn::BitCast(Bytes(), hn::Add(v[row], middle)), lower_bytes);
          store_lower_halves(Bytes(), levels, blocks[block] + row * rows.row_bytes,
                             blocks[block + kBlocksInVector - 1] + row * rows.row_bytes);
        }
      }
    }
  }
  return are_small(first_rows);
}

// No vectors; but shifts by a variable count are faster where the unit has BMI2.
bool read_all_mcus(const std::uint8_t* bytes, std::size_t byte_count, bool is_whole,
                   const SegmentTables& tables, const McuLayout& layout, std::size_t mcu_count,
                   std::int16_t* side, std::uint8_t* last) {
  SegmentBits in{bytes};
  std::array<int, kSegmentComponents> predictions{};
  for (std::size_t mcu = 0; mcu < mcu_count; ++mcu) {
    for (std::size_t i = 0; i < layout.block_count; ++i) {
      const std::size_t c = layout.blocks[i].component;
      const int place = read_block(in, tables[c], predictions[c], side);
      if (place < 0 || in.at > bytes + byte_count + sizeof in.bits) return false;
      *last = std::max(*last, static_cast<std::uint8_t>(place));
      ++last;
      side += kBlockPairSize;
    }
  }
  // Bits that fill up the last byte may be left.
  const auto used = (in.at - bytes) * 8 - in.count, all = static_cast<std::ptrdiff_t>(byte_count) * 8;
  return is_whole ? used <= all && all - used < 8 : used <= all;
}

}  // namespace ssd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ssd {

HWY_EXPORT(read_all_mcus);
HWY_EXPORT(write_all_mcus);
HWY_EXPORT(write_all_levels);

bool read_mcus(const std::uint8_t* bytes, std::size_t byte_count, bool is_whole, const SegmentTables& tables,
               const McuLayout& layout, std::size_t mcu_count, std::int16_t* side, std::uint8_t* last) {
  return HWY_DYNAMIC_DISPATCH(read_all_mcus)(bytes, byte_count, is_whole, tables, layout, mcu_count, side,
                                             last);
}

bool write_mcus(const std::int16_t* pairs, const std::uint8_t* last, const SegmentSteps& steps, int count,
                std::uint8_t* first, std::uint8_t* second, std::size_t row_bytes) {
  return HWY_DYNAMIC_DISPATCH(write_all_mcus)(pairs, last, steps, count, first, second, row_bytes);
}

bool write_levels(const std::int16_t* pairs, const std::uint8_t* last, const SegmentSteps& steps,
                  const McuLayout& layout, std::size_t count,
                  const std::array<LevelRows, kSegmentComponents>& components) {
  return HWY_DYNAMIC_DISPATCH(write_all_levels)(pairs, last, steps, layout, count, components);
}

}  // namespace ssd
#endif
