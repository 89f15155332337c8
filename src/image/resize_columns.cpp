#include "image/resize_columns.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/resize_columns.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdlib>

#include "image/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace ssd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3

// AVX-512 has a permutation of 16-bit numbers from two vectors, so that one load serves ten output pixels;
// loads for each pixel take twice as long (measured). Highway 1.0 has no such permutation: it is called by
// its own name.
using Words = hn::FixedTag<std::uint16_t, 32>;
constexpr std::size_t kGroupLanes = 32;
constexpr std::size_t kMostGroupPixels = kGroupLanes / 3;
constexpr int kReach = 2 * kGroupLanes;  // values that one permutation chooses from
static_assert(kReach <= ColumnMixer::kRowSlack && kGroupLanes <= ColumnMixer::kOutSlack);

// A group is output pixels of which each tap is within kReach values. The places are those of the first taps,
// the next taps' are a pixel further.
void plan_columns(const ResizeFilter& filter, ColumnPlan& plan) {
  const std::vector<int>& first = filter.first;
  const auto reach = [&](std::size_t begin, std::size_t end) {
    return std::abs(first[end - 1] - first[begin]) * 3 + 3;
  };
  const auto fits = [&](std::size_t pixels) {
    for (std::size_t begin = 0; begin < first.size(); begin += pixels) {
      if (reach(begin, std::min(begin + pixels, first.size())) > kReach) return false;
    }
    return true;
  };
  plan.group_pixels = kMostGroupPixels;
  while (!fits(plan.group_pixels)) --plan.group_pixels;

  const auto taps = static_cast<std::size_t>(filter.tap_count);
  const std::size_t groups = (first.size() + plan.group_pixels - 1) / plan.group_pixels;
  plan.first.resize(groups);
  plan.places.assign(groups * kGroupLanes, 0);
  plan.weights.assign(groups * taps * kGroupLanes, 0);
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t begin = group * plan.group_pixels;
    const std::size_t end = std::min(begin + plan.group_pixels, first.size());
    plan.first[group] = std::min(first[begin], first[end - 1]);
    for (std::size_t column = begin; column < end; ++column) {
      const std::size_t lane = (column - begin) * 3;
      for (std::size_t channel = 0; channel < 3; ++channel) {
        plan.places[group * kGroupLanes + lane + channel] = static_cast<std::uint16_t>(
            static_cast<std::size_t>(first[column] - plan.first[group]) * 3 + channel);
      }
      for (std::size_t tap = 0; tap < taps; ++tap) {
        std::fill_n(&plan.weights[(group * taps + tap) * kGroupLanes + lane], 3,
                    short_weight(filter.weights[column * taps + tap]));
      }
    }
  }
}

template <int kTaps>
void mix_few_columns(const ColumnPlan& plan, const std::uint16_t* row, std::uint8_t* out) {
  const std::uint16_t *places = plan.places.data(), *weights = plan.weights.data();
  for (const int first : plan.first) {
    const std::uint16_t* values = row + std::ptrdiff_t{first} * 3;
    const auto place = hn::LoadU(Words(), places);
    auto sum = hn::Set(Words(), std::uint16_t{128});
    for (int tap = 0; tap < kTaps; ++tap) {
      const auto low = hn::LoadU(Words(), values + tap * 3);
      const auto high = hn::LoadU(Words(), values + tap * 3 + kGroupLanes);
      const hn::Vec<Words> chosen{_mm512_permutex2var_epi16(low.raw, place.raw, high.raw)};
      sum = hn::Add(sum, hn::MulHigh(chosen, hn::LoadU(Words(), weights + tap * kGroupLanes)));
    }
    const hn::FixedTag<std::uint8_t, kGroupLanes> bytes;
    hn::StoreU(hn::Vec<decltype(bytes)>{_mm512_cvtepi16_epi8(hn::ShiftRight<8>(sum).raw)}, bytes, out);
    places += kGroupLanes;
    weights += kTaps * kGroupLanes;
    out += plan.group_pixels * 3;
  }
}

#else

// Each block of a vector holds two source pixels and a bit of the third, R G B R G B and two values of weight
// 0, for one output pixel. Two vectors are mixed together: a group is their output pixels, two for each
// block, of which the first vector has the even ones.
using Words = hn::CappedTag<std::uint16_t, 16>;
using Bytes = hn::Repartition<std::uint8_t, Words>;
constexpr std::size_t kLanes = hn::MaxLanes(Words()), kBlockLanes = 8, kBlocks = kLanes / kBlockLanes;
constexpr std::size_t kGroupPixels = 2 * kBlocks, kTapsInVector = 2;
static_assert(kBlockLanes <= ColumnMixer::kRowSlack && kGroupPixels * 3 + 2 <= ColumnMixer::kOutSlack);

// Output pixels that the last group lacks have no weight.
void plan_columns(const ResizeFilter& filter, ColumnPlan& plan) {
  const auto taps = static_cast<std::size_t>(filter.tap_count);
  const std::size_t vectors = (taps + kTapsInVector - 1) / kTapsInVector;
  plan.first = filter.first;
  plan.first.resize((filter.first.size() + kGroupPixels - 1) / kGroupPixels * kGroupPixels, 0);
  plan.weights.assign(plan.first.size() * vectors * kBlockLanes, 0);
  for (std::size_t column = 0; column < filter.first.size(); ++column) {
    const std::size_t group = column / kGroupPixels, block = column % kGroupPixels / 2;
    for (std::size_t tap = 0; tap < taps; ++tap) {
      const std::size_t vector = (group * 2 + column % 2) * vectors + tap / kTapsInVector;
      const std::size_t lane = block * kBlockLanes + tap % kTapsInVector * 3;
      std::fill_n(&plan.weights[vector * kLanes + lane], 3,
                  short_weight(filter.weights[column * taps + tap]));
    }
  }
}

// R G B of one output pixel in the lower half of each block. first: the first taps' pixels of all, of which
// each second one is taken.
template <int kVectors>
HWY_INLINE hn::Vec<Words> mixed_pixels(const std::uint16_t* row, const int* first,
                                       const std::uint16_t* weights) {
  const std::uint16_t* values = row + std::ptrdiff_t{first[0]} * 3;
  const std::uint16_t* other_values = row + std::ptrdiff_t{first[kGroupPixels - 2]} * 3;
  auto sum = hn::Zero(Words());
  for (std::size_t i = 0; i < kVectors; ++i) {
    const std::size_t at = i * kTapsInVector * 3;
    const auto own = hn::LoadU(Words(), weights + i * kLanes);
    sum = hn::Add(sum, hn::MulHigh(load_blocks(Words(), values + at, other_values + at), own));
  }
  return hn::Add(sum, hn::ShiftRightLanes<3>(Words(), sum));  // the second pixels onto the first
}

template <int kTaps>
void mix_few_columns(const ColumnPlan& plan, const std::uint16_t* row, std::uint8_t* out) {
  constexpr int kVectors = (kTaps + 1) / static_cast<int>(kTapsInVector);
  // The lower bytes of two times R G B and anything.
  alignas(16) static constexpr std::uint8_t kGather[16] = {0, 2, 4, 8, 10, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const auto gather = hn::LoadDup128(Bytes(), kGather);
  const hn::Repartition<std::uint64_t, Words> halves;
  const std::uint16_t* weights = plan.weights.data();
  for (std::size_t i = 0; i < plan.first.size(); i += kGroupPixels, out += kGroupPixels * 3) {
    const auto even = mixed_pixels<kVectors>(row, &plan.first[i], weights);
    const auto odd = mixed_pixels<kVectors>(row, &plan.first[i + 1], weights + kVectors * kLanes);
    weights += 2 * kVectors * kLanes;
    const auto sums = hn::BitCast(
        Words(), hn::InterleaveLower(halves, hn::BitCast(halves, even), hn::BitCast(halves, odd)));
    const auto levels = hn::ShiftRight<8>(hn::Add(sums, hn::Set(Words(), std::uint16_t{128})));
    store_lower_halves(Bytes(), hn::TableLookupBytes(hn::BitCast(Bytes(), levels), gather), out, out + 6);
  }
}

#endif

void mix_columns(const ColumnPlan& plan, int tap_count, const std::uint16_t* row, std::uint8_t* out) {
  static_assert(kFewTaps == 6);
  switch (tap_count) {
    case 1:
      return mix_few_columns<1>(plan, row, out);
    case 2:
      return mix_few_columns<2>(plan, row, out);
    case 3:
      return mix_few_columns<3>(plan, row, out);
    case 4:
      return mix_few_columns<4>(plan, row, out);
    case 5:
      return mix_few_columns<5>(plan, row, out);
    default:
      return mix_few_columns<6>(plan, row, out);
  }
}

}  // namespace ssd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ssd {

HWY_EXPORT(plan_columns);
HWY_EXPORT(mix_columns);

namespace {

void mix_many(const std::uint16_t* row, const ResizeFilter& filter, std::uint8_t* out) {
  const std::uint32_t* weights = filter.weights.data();
  for (const int first : filter.first) {
    const std::uint16_t* pixel = row + std::ptrdiff_t{first} * 3;
    for (int channel = 0; channel < 3; ++channel) {
      std::uint32_t sum = 1U << 23;  // 65280 * 65536 + this fits
      for (int tap = 0; tap < filter.tap_count; ++tap) sum += weights[tap] * pixel[tap * 3 + channel];
      out[channel] = static_cast<std::uint8_t>(sum >> 24);
    }
    weights += filter.tap_count;
    out += 3;
  }
}

}  // namespace

void ColumnMixer::prepare(const ResizeFilter& filter) {
  filter_ = &filter;
  if (filter.tap_count <= kFewTaps) HWY_DYNAMIC_DISPATCH(plan_columns)(filter, plan_);
}

void ColumnMixer::mix(const std::uint16_t* row, std::uint8_t* out) const {
  if (filter_->tap_count > kFewTaps) return mix_many(row, *filter_, out);
  HWY_DYNAMIC_DISPATCH(mix_columns)(plan_, filter_->tap_count, row, out);
}

}  // namespace ssd
#endif
