#include "image/jpeg_upsample.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/jpeg_upsample.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/grown.hpp"
#include "image/jpeg_colors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace ssd::HWY_NAMESPACE {

// Loops run over whole vectors: what they write behind `count` is never used.
using Words = hn::CappedTag<std::uint16_t, 16>;
using Shorts = hn::RebindToSigned<Words>;
using Levels = hn::Rebind<std::uint8_t, Words>;
constexpr std::size_t kLanes = hn::MaxLanes(Words());
static_assert(3 * kLanes <= kLevelSlack);

// 3 near + far: four times the levels a quarter of a row away from near.
void sum_rows(const std::uint8_t* near, const std::uint8_t* far, std::size_t count, std::uint16_t* out) {
  for (std::size_t i = 0; i < count; i += kLanes) {
    const auto n = hn::PromoteTo(Words(), hn::LoadU(Levels(), near + i));
    const auto f = hn::PromoteTo(Words(), hn::LoadU(Levels(), far + i));
    hn::StoreU(hn::Add(hn::Add(hn::Add(n, n), n), f), Words(), out + i);
  }
}
void copy_row(const std::uint8_t* from, std::size_t count, std::uint16_t* out) {
  for (std::size_t i = 0; i < count; i += kLanes)
    hn::StoreU(hn::PromoteTo(Words(), hn::LoadU(Levels(), from + i)), Words(), out + i);
}

// Two levels for each value, a quarter of a column away from it: 3 value + the neighbour on that side. Values
// are levels times a factor of 1 or 4; the bias makes halves go up and down in turn.
template <int kShift, int kEvenBias, int kOddBias>
HWY_INLINE void widen_values(const std::uint16_t* values, std::size_t count, std::uint8_t* out) {
  const auto even_bias = hn::Set(Words(), std::uint16_t{kEvenBias});
  const auto odd_bias = hn::Set(Words(), std::uint16_t{kOddBias});
  for (std::size_t i = 0; i < count; i += kLanes) {
    const auto own = hn::LoadU(Words(), values + i);
    const auto thrice = hn::Add(hn::Add(own, own), own);
    const auto left = hn::LoadU(Words(), values + i - 1), right = hn::LoadU(Words(), values + i + 1);
    const auto even = hn::ShiftRight<kShift>(hn::Add(hn::Add(thrice, left), even_bias));
    const auto odd = hn::ShiftRight<kShift>(hn::Add(hn::Add(thrice, right), odd_bias));
    const hn::Repartition<std::uint8_t, Words> bytes;  // in the order of memory: little-endian
    hn::StoreU(hn::BitCast(bytes, hn::Or(even, hn::ShiftLeft<8>(odd))), bytes, out + 2 * i);
  }
}
void widen_sums(const std::uint16_t* sums, std::size_t count, std::uint8_t* out) {
  widen_values<4, 8, 7>(sums, count, out);
}
void widen_levels(const std::uint16_t* levels, std::size_t count, std::uint8_t* out) {
  widen_values<2, 1, 2>(levels, count, out);
}
void levels_of_sums(const std::uint16_t* sums, std::uint16_t bias, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; i += kLanes) {
    const auto level = hn::ShiftRight<2>(hn::Add(hn::LoadU(Words(), sums + i), hn::Set(Words(), bias)));
    hn::StoreU(hn::DemoteTo(Levels(), hn::BitCast(Shorts(), level)), Levels(), out + i);
  }
}

void color_levels(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red,
                  std::size_t count, std::uint8_t* out) {
  const auto middle = hn::Set(Shorts(), std::int16_t{128});
  for (std::size_t i = 0; i < count; i += kLanes) {
    const auto load = [&](const std::uint8_t* from)
                          HWY_ATTR { return hn::PromoteTo(Shorts(), hn::LoadU(Levels(), from + i)); };
    const auto rgb = rgb_of(Shorts(), load(luma), hn::Sub(load(blue), middle), hn::Sub(load(red), middle));
    hn::StoreInterleaved3(hn::DemoteTo(Levels(), rgb.red), hn::DemoteTo(Levels(), rgb.green),
                          hn::DemoteTo(Levels(), rgb.blue), Levels(), out + 3 * i);
  }
}

void gray_levels(const std::uint8_t* luma, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; i += kLanes) {
    const auto level = hn::LoadU(Levels(), luma + i);
    hn::StoreInterleaved3(level, level, level, Levels(), out + 3 * i);
  }
}

}  // namespace ssd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ssd {

HWY_EXPORT(sum_rows);
HWY_EXPORT(copy_row);
HWY_EXPORT(widen_sums);
HWY_EXPORT(widen_levels);
HWY_EXPORT(levels_of_sums);
HWY_EXPORT(color_levels);
HWY_EXPORT(gray_levels);

void ChromaUpsampler::widen(const std::uint8_t* near, const std::uint8_t* far, const ChromaScale& scale,
                            bool is_lower, std::size_t begin, std::size_t end, std::size_t first,
                            std::size_t count, std::uint8_t* out) {
  const bool has_left = scale.horizontal == 2 && first > begin;
  const bool has_right = scale.horizontal == 2 && first + count < end;
  const std::size_t from = first - begin - (has_left ? 1 : 0);
  const std::size_t neighbours = (has_left ? 1 : 0) + (has_right ? 1 : 0);
  // One value in front of the first and one behind the last.
  std::uint16_t* sums = grown(sums_, count + 2 + kLevelSlack) + 1;
  std::uint16_t* target = sums - (has_left ? 1 : 0);
  if (scale.vertical == 2) {
    HWY_DYNAMIC_DISPATCH(sum_rows)(near + from, far + from, count + neighbours, target);
  } else {
    HWY_DYNAMIC_DISPATCH(copy_row)(near + from, count + neighbours, target);
  }
  if (!has_left) sums[-1] = sums[0];
  if (!has_right) sums[count] = sums[count - 1];
  if (scale.horizontal == 1) {
    HWY_DYNAMIC_DISPATCH(levels_of_sums)(sums, is_lower ? 2 : 1, count, out);
  } else if (scale.vertical == 2) {
    HWY_DYNAMIC_DISPATCH(widen_sums)(sums, count, out);
  } else {
    HWY_DYNAMIC_DISPATCH(widen_levels)(sums, count, out);
  }
}

void color_row(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red, std::size_t count,
               std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(color_levels)(luma, blue, red, count, out);
}

void gray_row(const std::uint8_t* luma, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(gray_levels)(luma, count, out);
}

}  // namespace ssd
#endif
