#include "image/resize_columns.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <span>

#include "core/vector_clones.hpp"

namespace ssd {
namespace {

// Two pixels and a bit of the third: R G B R G B, and two values of weight 0.
constexpr int kLanes = 8;
constexpr int kPixelsInVector = 2;

// Blocks of ten pixels or fewer for vectors of 32 lanes, and the values that one permutation chooses from.
constexpr int kBlockLanes = 32;
constexpr std::size_t kMostBlockPixels = kBlockLanes / 3;
constexpr int kReach = 2 * kBlockLanes;
static_assert(kReach <= ColumnMixer::kRowSlack && kBlockLanes <= ColumnMixer::kOutSlack);

// The sum of `vectors` times their weights, brought to levels: R, G, B and anything in the lowest bytes.
#if defined(__x86_64__)
template <int kVectors>
SSD_INLINE std::uint32_t mixed_pixel(const std::uint16_t* values, const std::uint16_t* weights) {
  const auto load = [](const std::uint16_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  };
  __m128i sum = _mm_mulhi_epu16(load(values), load(weights));
  for (int i = 1; i < kVectors; ++i) {
    sum = _mm_add_epi16(sum,
                        _mm_mulhi_epu16(load(values + i * kPixelsInVector * 3), load(weights + i * kLanes)));
  }
  sum = _mm_add_epi16(sum, _mm_srli_si128(sum, 6));  // the second pixels onto the first
  sum = _mm_srli_epi16(_mm_add_epi16(sum, _mm_set1_epi16(128)), 8);
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_packus_epi16(sum, sum)));
}
#else
template <int kVectors>
SSD_INLINE std::uint32_t mixed_pixel(const std::uint16_t* values, const std::uint16_t* weights) {
  std::uint32_t pixel = 0;
  for (int channel = 0; channel < 3; ++channel) {
    std::uint32_t sum = 128;
    for (int tap = 0; tap < kVectors * kPixelsInVector; ++tap) {
      const int lane = tap / kPixelsInVector * kLanes + tap % kPixelsInVector * 3 + channel;
      sum += upper_half(values[tap * 3 + channel], weights[lane]);
    }
    pixel |= sum >> 8 << 8 * channel;
  }
  return pixel;
}
#endif

template <int kVectors>
void mix_pixels(const std::uint16_t* row, std::span<const int> first, const std::uint16_t* weights,
                std::uint8_t* out) {
  for (const int pixel : first) {
    const std::uint32_t mixed = mixed_pixel<kVectors>(row + std::ptrdiff_t{pixel} * 3, weights);
    for (int byte = 0; byte < 4; ++byte) out[byte] = static_cast<std::uint8_t>(mixed >> 8 * byte);
    weights += kVectors * kLanes;
    out += 3;
  }
}

#if defined(__x86_64__)
// The sums of two pixels, one in each half.
template <int kVectors>
SSD_TARGET_AVX2 SSD_INLINE __m256i mixed_pair(const std::uint16_t* row, const int* first,
                                              const std::uint16_t* weights) {
  const std::uint16_t* low = row + std::ptrdiff_t{first[0]} * 3;
  const std::uint16_t* high = row + std::ptrdiff_t{first[1]} * 3;
  __m256i sum = _mm256_setzero_si256();
  for (int i = 0; i < kVectors; ++i) {
    const __m256i values =
        _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(high + i * kPixelsInVector * 3),
                            reinterpret_cast<const __m128i*>(low + i * kPixelsInVector * 3));
    const __m256i own = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + i * 2 * kLanes));
    sum = _mm256_add_epi16(sum, _mm256_mulhi_epu16(values, own));
  }
  return _mm256_add_epi16(sum, _mm256_srli_si256(sum, 6));  // the second pixels onto the first
}

template <int kVectors>
SSD_TARGET_AVX2 void mix_fours_avx2(const std::uint16_t* row, std::span<const int> first,
                                    const std::uint16_t* weights, std::uint8_t* out) {
  constexpr int kPairWeights = kVectors * 2 * kLanes;
  const __m128i without_fourth = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  for (std::size_t i = 0; i < first.size(); i += 4, weights += 2 * kPairWeights, out += 12) {
    const __m256i sums =
        _mm256_unpacklo_epi64(mixed_pair<kVectors>(row, &first[i], weights),
                              mixed_pair<kVectors>(row, &first[i + 2], weights + kPairWeights));
    const __m256i levels = _mm256_srli_epi16(_mm256_add_epi16(sums, _mm256_set1_epi16(128)), 8);
    const __m256i bytes =
        _mm256_packus_epi16(levels, levels);  // pixels 0 and 2 in one half, 1 and 3 in the other
    const __m128i pixels =
        _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(pixels, without_fourth));
  }
}

template <int kTaps>
SSD_TARGET_AVX512 void mix_blocks_avx512(const std::uint16_t* row, std::span<const int> block_first,
                                         const std::uint16_t* places, const std::uint16_t* weights,
                                         std::size_t block_bytes, std::uint8_t* out) {
  for (const int first : block_first) {
    const std::uint16_t* values = row + std::ptrdiff_t{first} * 3;
    const __m512i place = _mm512_loadu_si512(places);
    __m512i sum = _mm512_set1_epi16(128);
    for (int tap = 0; tap < kTaps; ++tap) {
      const __m512i chosen = _mm512_permutex2var_epi16(_mm512_loadu_si512(values + tap * 3), place,
                                                       _mm512_loadu_si512(values + tap * 3 + kBlockLanes));
      sum =
          _mm512_add_epi16(sum, _mm512_mulhi_epu16(chosen, _mm512_loadu_si512(weights + tap * kBlockLanes)));
    }
    const __m256i levels = _mm512_maskz_cvtepi16_epi8(~__mmask32{0}, _mm512_srli_epi16(sum, 8));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), levels);
    places += kBlockLanes;
    weights += kTaps * kBlockLanes;
    out += block_bytes;
  }
}
#endif

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
  if (filter.tap_count > kFewTaps) return;
  if (unit_ == VectorUnit::avx512) {
    spread_over_blocks();
  } else {
    spread_over_pixels();
  }
}

// R, G and B of a pixel have the same weight, two source pixels to a vector. AVX2 has the vectors of two
// output pixels beside each other, and works on four; those that are missing have no weight.
void ColumnMixer::spread_over_pixels() {
  const auto taps = static_cast<std::size_t>(filter_->tap_count);
  const std::size_t vectors = (taps + kPixelsInVector - 1) / kPixelsInVector;
  const std::size_t beside = unit_ == VectorUnit::avx2 ? 2 : 1, together = unit_ == VectorUnit::avx2 ? 4 : 1;
  first_ = filter_->first;
  first_.resize((first_.size() + together - 1) / together * together, 0);
  weights_.assign(first_.size() * vectors * kLanes, 0);
  for (std::size_t column = 0; column < filter_->first.size(); ++column) {
    for (std::size_t tap = 0; tap < taps; ++tap) {
      const std::size_t vector = column / beside * vectors + tap / kPixelsInVector;
      const std::size_t at = (vector * beside + column % beside) * kLanes + tap % kPixelsInVector * 3;
      std::fill_n(&weights_[at], 3, short_weight(filter_->weights[column * taps + tap]));
    }
  }
}

// A block is output pixels of which each tap is within kReach values. The places are those of the first taps,
// the next taps' are a pixel further.
void ColumnMixer::spread_over_blocks() {
  const std::vector<int>& first = filter_->first;
  const auto reach = [&](std::size_t begin, std::size_t end) {
    return std::abs(first[end - 1] - first[begin]) * 3 + 3;
  };
  const auto fits = [&](std::size_t pixels) {
    for (std::size_t begin = 0; begin < first.size(); begin += pixels) {
      if (reach(begin, std::min(begin + pixels, first.size())) > kReach) return false;
    }
    return true;
  };
  block_pixels_ = kMostBlockPixels;
  while (!fits(block_pixels_)) --block_pixels_;

  const auto taps = static_cast<std::size_t>(filter_->tap_count);
  const std::size_t blocks = (first.size() + block_pixels_ - 1) / block_pixels_;
  first_.resize(blocks);
  places_.assign(blocks * kBlockLanes, 0);
  weights_.assign(blocks * taps * kBlockLanes, 0);
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t begin = block * block_pixels_, end = std::min(begin + block_pixels_, first.size());
    first_[block] = std::min(first[begin], first[end - 1]);
    for (std::size_t column = begin; column < end; ++column) {
      const std::size_t lane = (column - begin) * 3;
      for (std::size_t channel = 0; channel < 3; ++channel) {
        places_[block * kBlockLanes + lane + channel] =
            static_cast<std::uint16_t>(static_cast<std::size_t>(first[column] - first_[block]) * 3 + channel);
      }
      for (std::size_t tap = 0; tap < taps; ++tap) {
        std::fill_n(&weights_[(block * taps + tap) * kBlockLanes + lane], 3,
                    short_weight(filter_->weights[column * taps + tap]));
      }
    }
  }
}

template <int kTaps>
void ColumnMixer::mix_few(const std::uint16_t* row, std::uint8_t* out) const {
  constexpr int kVectors = (kTaps + kPixelsInVector - 1) / kPixelsInVector;
#if defined(__x86_64__)
  if (unit_ == VectorUnit::avx512)
    return mix_blocks_avx512<kTaps>(row, first_, places_.data(), weights_.data(), block_pixels_ * 3, out);
  if (unit_ == VectorUnit::avx2) return mix_fours_avx2<kVectors>(row, first_, weights_.data(), out);
#endif
  mix_pixels<kVectors>(row, first_, weights_.data(), out);
}

void ColumnMixer::mix(const std::uint16_t* row, std::uint8_t* out) const {
  switch (filter_->tap_count) {
    case 1:
      return mix_few<1>(row, out);
    case 2:
      return mix_few<2>(row, out);
    case 3:
      return mix_few<3>(row, out);
    case 4:
      return mix_few<4>(row, out);
    case 5:
      return mix_few<5>(row, out);
    case 6:
      return mix_few<6>(row, out);
    default:
      mix_many(row, *filter_, out);
  }
}

}  // namespace ssd
