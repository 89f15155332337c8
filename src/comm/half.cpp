#include "comm/half.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/half.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace ssd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Words = hn::Rebind<std::uint16_t, Floats>;
using Halves = hn::Rebind<hwy::float16_t, Floats>;
using FloatVector = hn::Vec<Floats>;
constexpr std::size_t kLanes = hn::MaxLanes(Floats());

// Units whose instructions convert halves as half_to_float and float_to_half do, infinities and NaN included.
// Highway's substitute on SSE4 does not.
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2
constexpr bool kHasHalves = false;
#else
constexpr bool kHasHalves = true;
#endif

HWY_INLINE FloatVector load_halves(const std::uint16_t* from) {
  return hn::PromoteTo(Floats(), hn::BitCast(Halves(), hn::LoadU(Words(), from)));
}
HWY_INLINE void store_halves(FloatVector values, std::uint16_t* to) {
  hn::StoreU(hn::BitCast(Words(), hn::DemoteTo(Halves(), values)), Words(), to);
}
HWY_INLINE FloatVector load_bfloat16s(const std::uint16_t* from) {
  const hn::RebindToUnsigned<Floats> bits;
  return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(Words(), from))));
}

// The scalar form is the rest's, and the whole's where the unit has no halves.
void add_all_halves(std::uint16_t* sum, const std::uint16_t* term, std::size_t count) {
  std::size_t i = 0;
  if constexpr (kHasHalves) {
    for (; i + kLanes <= count; i += kLanes)
      store_halves(hn::Add(load_halves(sum + i), load_halves(term + i)), sum + i);
  }
  for (; i < count; ++i) sum[i] = float_to_half(half_to_float(sum[i]) + half_to_float(term[i]));
}

void widen_halves(const std::uint16_t* values, float* out, std::size_t count) {
  std::size_t i = 0;
  if constexpr (kHasHalves) {
    for (; i + kLanes <= count; i += kLanes) hn::StoreU(load_halves(values + i), Floats(), out + i);
  }
  for (; i < count; ++i) out[i] = half_to_float(values[i]);
}

void widen_bfloat16s(const std::uint16_t* values, float* out, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(load_bfloat16s(values + i), Floats(), out + i);
  for (; i < count; ++i) out[i] = bfloat16_to_float(values[i]);
}

void scale_floats(const float* values, float scale, std::uint16_t* out, std::size_t count) {
  std::size_t i = 0;
  if constexpr (kHasHalves) {
    const auto factor = hn::Set(Floats(), scale);
    for (; i + kLanes <= count; i += kLanes)
      store_halves(hn::Mul(hn::LoadU(Floats(), values + i), factor), out + i);
  }
  for (; i < count; ++i) out[i] = float_to_half(values[i] * scale);
}

void scale_bfloat16s(const std::uint16_t* values, float scale, std::uint16_t* out, std::size_t count) {
  std::size_t i = 0;
  if constexpr (kHasHalves) {
    const auto factor = hn::Set(Floats(), scale);
    for (; i + kLanes <= count; i += kLanes)
      store_halves(hn::Mul(load_bfloat16s(values + i), factor), out + i);
  }
  for (; i < count; ++i) out[i] = float_to_half(bfloat16_to_float(values[i]) * scale);
}

// A plain loop, which the compiler vectorises for each unit.
void add_all_bfloat16s(std::uint16_t* HWY_RESTRICT sum, const std::uint16_t* HWY_RESTRICT term,
                       std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    sum[i] = float_to_bfloat16(bfloat16_to_float(sum[i]) + bfloat16_to_float(term[i]));
}

}  // namespace ssd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ssd {

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0x1F) {  // infinity, or a NaN made quiet as the hardware does
    const std::uint32_t quiet = fraction != 0 ? 0x400000U : 0U;
    return std::bit_cast<float>(sign | 0x7F800000U | quiet | (fraction << 13));
  }
  if (exponent == 0)
    return std::copysign(static_cast<float>(fraction) * 0x1p-24F, std::bit_cast<float>(sign | 0x3F800000U));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U)
    return static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 13) & 0x3FFU));
  if (magnitude >= 0x47800000U) return sign | 0x7C00U;  // 65536 and more
  if (magnitude < 0x38800000U) {                        // below 2^-14: a subnormal half
    // Adding 0.5 puts the rounded multiple of 2^-24 into the low bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U));
  }
  const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112U << 10)));
}

HWY_EXPORT(add_all_halves);
HWY_EXPORT(add_all_bfloat16s);
HWY_EXPORT(widen_halves);
HWY_EXPORT(widen_bfloat16s);
HWY_EXPORT(scale_floats);
HWY_EXPORT(scale_bfloat16s);

void add_halves(std::uint16_t* sum, const std::uint16_t* term, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(add_all_halves)(sum, term, count);
}

void add_bfloat16s(std::uint16_t* sum, const std::uint16_t* term, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(add_all_bfloat16s)(sum, term, count);
}

void halves_to_floats(const std::uint16_t* values, float* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(widen_halves)(values, out, count);
}

void bfloat16s_to_floats(const std::uint16_t* values, float* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(widen_bfloat16s)(values, out, count);
}

void floats_to_halves(const float* values, float scale, std::uint16_t* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(scale_floats)(values, scale, out, count);
}

void bfloat16s_to_halves(const std::uint16_t* values, float scale, std::uint16_t* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(scale_bfloat16s)(values, scale, out, count);
}

}  // namespace ssd
#endif
