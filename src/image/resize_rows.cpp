#include "image/resize_rows.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>

#include "core/vector_clones.hpp"
#include "image/resize_filter.hpp"

namespace ssd {
namespace {

using Rows = const std::uint8_t* const*;

template <int kTaps>
void mix_rows_any(Rows rows, const std::uint32_t* weights, std::size_t count, std::uint16_t* __restrict out) {
  std::uint16_t own[kTaps];
  const std::uint8_t* row[kTaps];
  for (int tap = 0; tap < kTaps; ++tap) {
    own[tap] = short_weight(weights[tap]);
    row[tap] = rows[tap];
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t sum = 0;
    for (int tap = 0; tap < kTaps; ++tap) {
      const auto level = static_cast<std::uint16_t>(row[tap][i] << 8);
      sum = static_cast<std::uint16_t>(sum + upper_half(level, own[tap]));
    }
    out[i] = sum;
  }
}

#if defined(__x86_64__)
// The vectors of the two units below: so many levels at once. Zeros that are put below the levels make them
// 1/256; that takes each 16 bytes of a vector apart into two halves, which the end puts in order again. The
// last vector of a row overlaps the one before.
constexpr std::size_t kLevelsAvx2 = 32, kLevelsAvx512 = 64;

template <int kTaps>
SSD_TARGET_AVX2 void mix_rows_avx2(Rows rows, const std::uint32_t* weights, std::size_t count,
                                   std::uint16_t* out) {
  const __m256i zero = _mm256_setzero_si256();
  __m256i own[kTaps];
  for (int tap = 0; tap < kTaps; ++tap)
    own[tap] = _mm256_set1_epi16(static_cast<short>(short_weight(weights[tap])));
  for (std::size_t next = 0; next < count; next += kLevelsAvx2) {
    const std::size_t at = std::min(next, count - kLevelsAvx2);
    __m256i low = zero, high = zero;
    for (int tap = 0; tap < kTaps; ++tap) {
      const __m256i levels = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[tap] + at));
      low = _mm256_add_epi16(low, _mm256_mulhi_epu16(_mm256_unpacklo_epi8(zero, levels), own[tap]));
      high = _mm256_add_epi16(high, _mm256_mulhi_epu16(_mm256_unpackhi_epi8(zero, levels), own[tap]));
    }
    auto* to = reinterpret_cast<__m256i*>(out + at);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
  }
}

template <int kTaps>
SSD_TARGET_AVX512 void mix_rows_avx512(Rows rows, const std::uint32_t* weights, std::size_t count,
                                       std::uint16_t* out) {
  const __m512i zero = _mm512_setzero_si512();
  __m512i own[kTaps];
  for (int tap = 0; tap < kTaps; ++tap)
    own[tap] = _mm512_set1_epi16(static_cast<short>(short_weight(weights[tap])));
  for (std::size_t next = 0; next < count; next += kLevelsAvx512) {
    const std::size_t at = std::min(next, count - kLevelsAvx512);
    __m512i low = zero, high = zero;
    for (int tap = 0; tap < kTaps; ++tap) {
      const __m512i levels = _mm512_loadu_si512(rows[tap] + at);
      low = _mm512_add_epi16(low, _mm512_mulhi_epu16(_mm512_unpacklo_epi8(zero, levels), own[tap]));
      high = _mm512_add_epi16(high, _mm512_mulhi_epu16(_mm512_unpackhi_epi8(zero, levels), own[tap]));
    }
    const __m512i first_half = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i second_half = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    _mm512_storeu_si512(out + at, _mm512_permutex2var_epi64(low, first_half, high));
    _mm512_storeu_si512(out + at + kLevelsAvx512 / 2, _mm512_permutex2var_epi64(low, second_half, high));
  }
}
#endif

template <int kTaps>
void mix_few_rows([[maybe_unused]] VectorUnit unit, Rows rows, const std::uint32_t* weights,
                  std::size_t count, std::uint16_t* out) {
#if defined(__x86_64__)
  if (unit == VectorUnit::avx512 && count >= kLevelsAvx512)
    return mix_rows_avx512<kTaps>(rows, weights, count, out);
  if (unit != VectorUnit::any && count >= kLevelsAvx2) return mix_rows_avx2<kTaps>(rows, weights, count, out);
#endif
  mix_rows_any<kTaps>(rows, weights, count, out);
}

SSD_VECTOR_CLONES void add_row(const std::uint8_t* row, std::uint32_t weight, std::size_t count,
                               std::uint32_t* __restrict sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += weight * row[i];
}

SSD_VECTOR_CLONES void round_sums(const std::uint32_t* sums, std::size_t count,
                                  std::uint16_t* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint16_t>((sums[i] + 128) >> 8);
}

}  // namespace

void RowMixer::mix(Rows rows, const std::uint32_t* weights, int tap_count, std::size_t count,
                   std::uint16_t* out) {
  static_assert(kFewTaps == 6);
  switch (tap_count) {
    case 1:
      return mix_few_rows<1>(unit_, rows, weights, count, out);
    case 2:
      return mix_few_rows<2>(unit_, rows, weights, count, out);
    case 3:
      return mix_few_rows<3>(unit_, rows, weights, count, out);
    case 4:
      return mix_few_rows<4>(unit_, rows, weights, count, out);
    case 5:
      return mix_few_rows<5>(unit_, rows, weights, count, out);
    case 6:
      return mix_few_rows<6>(unit_, rows, weights, count, out);
    default:
      sums_.assign(count, 0);
      for (int tap = 0; tap < tap_count; ++tap) add_row(rows[tap], weights[tap], count, sums_.data());
      round_sums(sums_.data(), count, out);
  }
}

}  // namespace ssd
