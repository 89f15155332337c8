#include "image/resize_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/resize_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "core/error.hpp"
#include "image/resize_filter.hpp"

HWY_BEFORE_NAMESPACE();
namespace ssd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::CappedTag<std::uint8_t, 64>;
using Words = hn::Repartition<std::uint16_t, Bytes>;
using WordVector = hn::Vec<Words>;

// first, second: the first and the second halves of all blocks of 128 bits, which are stored in turn.
template <class D>
HWY_INLINE void store_in_turn(D words, hn::Vec<D> first, hn::Vec<D> second, std::uint16_t* out) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  if constexpr (kLanes == 8) {
    hn::StoreU(first, words, out);
    hn::StoreU(second, words, out + kLanes);
  } else {
    auto low = hn::ConcatLowerLower(words, second, first), high = hn::ConcatUpperUpper(words, second, first);
    if constexpr (kLanes == 32) {
      alignas(64) static constexpr std::uint64_t kInTurn[] = {0, 1, 4, 5, 2, 3, 6, 7};
      const hn::Repartition<std::uint64_t, D> pairs;
      const auto order = hn::SetTableIndices(pairs, kInTurn);
      low = hn::BitCast(words, hn::TableLookupLanes(hn::BitCast(pairs, low), order));
      high = hn::BitCast(words, hn::TableLookupLanes(hn::BitCast(pairs, high), order));
    }
    hn::StoreU(low, words, out);
    hn::StoreU(high, words, out + kLanes);
  }
}

// Zeros below the levels make them 1/256.
template <int kTaps>
void mix_few_rows(const std::uint8_t* const* rows, const std::uint32_t* weights, std::size_t count,
                  std::uint16_t* out) {
  constexpr std::size_t kLevels = hn::MaxLanes(Bytes());
  if (count >= kLevels) {
    WordVector own[kTaps];
    for (int tap = 0; tap < kTaps; ++tap) own[tap] = hn::Set(Words(), short_weight(weights[tap]));
    const auto zero = hn::Zero(Bytes());
    for (std::size_t next = 0; next < count; next += kLevels) {
      const std::size_t at = std::min(next, count - kLevels);  // the last vector overlaps the one before
      WordVector low = hn::Zero(Words()), high = hn::Zero(Words());
      for (int tap = 0; tap < kTaps; ++tap) {
        const auto levels = hn::LoadU(Bytes(), rows[tap] + at);
        const auto first = hn::BitCast(Words(), hn::InterleaveLower(Bytes(), zero, levels));
        const auto second = hn::BitCast(Words(), hn::InterleaveUpper(Bytes(), zero, levels));
        low = hn::Add(low, hn::MulHigh(first, own[tap]));
        high = hn::Add(high, hn::MulHigh(second, own[tap]));
      }
      store_in_turn(Words(), low, high, out + at);
    }
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t sum = 0;
    for (int tap = 0; tap < kTaps; ++tap) {
      const auto level = static_cast<std::uint16_t>(rows[tap][i] << 8);
      sum = static_cast<std::uint16_t>(sum + upper_half(level, short_weight(weights[tap])));
    }
    out[i] = sum;
  }
}

void mix_rows(const std::uint8_t* const* rows, const std::uint32_t* weights, int tap_count, std::size_t count,
              std::uint16_t* out) {
  static_assert(kFewTaps == 6);
  switch (tap_count) {
    case 1:
      return mix_few_rows<1>(rows, weights, count, out);
    case 2:
      return mix_few_rows<2>(rows, weights, count, out);
    case 3:
      return mix_few_rows<3>(rows, weights, count, out);
    case 4:
      return mix_few_rows<4>(rows, weights, count, out);
    case 5:
      return mix_few_rows<5>(rows, weights, count, out);
    default:
      return mix_few_rows<6>(rows, weights, count, out);
  }
}

// Plain loops, which the compiler vectorises for each unit.
void add_row(const std::uint8_t* row, std::uint32_t weight, std::size_t count,
             std::uint32_t* HWY_RESTRICT sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += weight * row[i];
}
void round_sums(const std::uint32_t* sums, std::size_t count, std::uint16_t* HWY_RESTRICT out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint16_t>((sums[i] + 128) >> 8);
}

}  // namespace ssd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ssd {

HWY_EXPORT(mix_rows);
HWY_EXPORT(add_row);
HWY_EXPORT(round_sums);

void RowMixer::mix(const std::uint8_t* const* rows, const std::uint32_t* weights, int tap_count,
                   std::size_t count, std::uint16_t* out) {
  SSD_EXPECT(tap_count > 0);
  if (tap_count <= kFewTaps) return HWY_DYNAMIC_DISPATCH(mix_rows)(rows, weights, tap_count, count, out);
  sums_.assign(count, 0);
  for (int tap = 0; tap < tap_count; ++tap)
    HWY_DYNAMIC_DISPATCH(add_row)(rows[tap], weights[tap], count, sums_.data());
  HWY_DYNAMIC_DISPATCH(round_sums)(sums_.data(), count, out);
}

}  // namespace ssd
#endif
