#include "comm/half.hpp"

#include <bit>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#define SSD_HAS_F16C_VARIANT 1
#endif

namespace ssd {

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0x1F) {  // infinity, or a NaN made quiet as the hardware does
    const std::uint32_t quiet = fraction != 0 ? 0x400000U : 0U;
    return std::bit_cast<float>(sign | 0x7F800000U | quiet | (fraction << 13));
  }
  if (exponent == 0) return std::copysign(static_cast<float>(fraction) * 0x1p-24F, std::bit_cast<float>(sign | 0x3F800000U));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 13) & 0x3FFU));
  if (magnitude >= 0x47800000U) return sign | 0x7C00U;  // 65536 and more
  if (magnitude < 0x38800000U) {                        // below 2^-14: a subnormal half
    // Adding 0.5 puts the rounded multiple of 2^-24 into the low bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U));
  }
  const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112U << 10)));
}

namespace {

#if SSD_HAS_F16C_VARIANT

bool has_f16c() {
  static const bool result = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  return result;
}

#define SSD_F16C __attribute__((target("avx2,f16c")))

SSD_F16C __m128i load8(const std::uint16_t* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }
SSD_F16C void store8(std::uint16_t* at, __m128i value) { _mm_storeu_si128(reinterpret_cast<__m128i*>(at), value); }
SSD_F16C __m128i to_halves(__m256 value) { return _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT); }
SSD_F16C __m256 from_bfloat16s(__m128i bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

// Each handles whole blocks of 8 and returns how many it did.
SSD_F16C std::size_t add_halves_f16c(std::uint16_t* sum, const std::uint16_t* term, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    store8(sum + i, to_halves(_mm256_add_ps(_mm256_cvtph_ps(load8(sum + i)), _mm256_cvtph_ps(load8(term + i)))));
  }
  return i;
}

SSD_F16C std::size_t halves_to_floats_f16c(const std::uint16_t* values, float* out, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(out + i, _mm256_cvtph_ps(load8(values + i)));
  return i;
}

SSD_F16C std::size_t bfloat16s_to_floats_f16c(const std::uint16_t* values, float* out, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(out + i, from_bfloat16s(load8(values + i)));
  return i;
}

SSD_F16C std::size_t floats_to_halves_f16c(const float* values, float scale, std::uint16_t* out, std::size_t count) {
  const __m256 factor = _mm256_set1_ps(scale);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) store8(out + i, to_halves(_mm256_mul_ps(_mm256_loadu_ps(values + i), factor)));
  return i;
}

SSD_F16C std::size_t bfloat16s_to_halves_f16c(const std::uint16_t* values, float scale, std::uint16_t* out,
                                              std::size_t count) {
  const __m256 factor = _mm256_set1_ps(scale);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) store8(out + i, to_halves(_mm256_mul_ps(from_bfloat16s(load8(values + i)), factor)));
  return i;
}

#else

bool has_f16c() { return false; }
std::size_t add_halves_f16c(std::uint16_t*, const std::uint16_t*, std::size_t) { return 0; }
std::size_t halves_to_floats_f16c(const std::uint16_t*, float*, std::size_t) { return 0; }
std::size_t bfloat16s_to_floats_f16c(const std::uint16_t*, float*, std::size_t) { return 0; }
std::size_t floats_to_halves_f16c(const float*, float, std::uint16_t*, std::size_t) { return 0; }
std::size_t bfloat16s_to_halves_f16c(const std::uint16_t*, float, std::uint16_t*, std::size_t) { return 0; }

#endif

}  // namespace

void add_halves(std::uint16_t* sum, const std::uint16_t* term, std::size_t count) {
  for (std::size_t i = has_f16c() ? add_halves_f16c(sum, term, count) : 0; i < count; ++i) {
    sum[i] = float_to_half(half_to_float(sum[i]) + half_to_float(term[i]));
  }
}

void add_bfloat16s(std::uint16_t* sum, const std::uint16_t* term, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    sum[i] = float_to_bfloat16(bfloat16_to_float(sum[i]) + bfloat16_to_float(term[i]));
  }
}

void halves_to_floats(const std::uint16_t* values, float* out, std::size_t count) {
  for (std::size_t i = has_f16c() ? halves_to_floats_f16c(values, out, count) : 0; i < count; ++i) {
    out[i] = half_to_float(values[i]);
  }
}

void bfloat16s_to_floats(const std::uint16_t* values, float* out, std::size_t count) {
  for (std::size_t i = has_f16c() ? bfloat16s_to_floats_f16c(values, out, count) : 0; i < count; ++i) {
    out[i] = bfloat16_to_float(values[i]);
  }
}

void floats_to_halves(const float* values, float scale, std::uint16_t* out, std::size_t count) {
  for (std::size_t i = has_f16c() ? floats_to_halves_f16c(values, scale, out, count) : 0; i < count; ++i) {
    out[i] = float_to_half(values[i] * scale);
  }
}

void bfloat16s_to_halves(const std::uint16_t* values, float scale, std::uint16_t* out, std::size_t count) {
  for (std::size_t i = has_f16c() ? bfloat16s_to_halves_f16c(values, scale, out, count) : 0; i < count; ++i) {
    out[i] = float_to_half(bfloat16_to_float(values[i]) * scale);
  }
}

}  // namespace ssd
