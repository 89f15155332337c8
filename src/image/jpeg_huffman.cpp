#include "image/jpeg_huffman.hpp"

#include <algorithm>

namespace ssd {

std::size_t copy_unstuffed(const std::uint8_t* begin, const std::uint8_t* end, std::uint8_t* out) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  std::uint8_t* to = out;
  while (begin != end) {
    std::uint64_t word;
    if (end - begin >= 8) {
      std::memcpy(&word, begin, sizeof word);
      std::memcpy(to, &word, sizeof word);
      const std::uint64_t stuffed =
          (~word - kOnes) & word & (kOnes << 7);  // the top bit of the first byte of 0xFF
      const bool is_little = std::endian::native == std::endian::little;
      const int count =
          stuffed == 0 ? 8 : (is_little ? std::countr_zero(stuffed) : std::countl_zero(stuffed)) / 8;
      begin += count;
      to += count;
      if (stuffed == 0) continue;
    }
    *to++ = *begin++;
    if (to[-1] != 0xFF) continue;
    if (begin == end || *begin != 0) {  // a marker
      --to;
      break;
    }
    ++begin;
  }
  std::memset(to, 0, kBytesBehindSegment);
  return static_cast<std::size_t>(to - out);
}

HuffmanSymbol HuffmanDecoder::symbol_of(std::size_t place, unsigned code_bits) const {
  const unsigned symbol = symbols_[place];
  HuffmanSymbol result;
  result.run = static_cast<std::uint8_t>(symbol >> 4);
  result.value_bits = static_cast<std::uint8_t>(symbol & 15);
  result.code_bits = static_cast<std::uint8_t>(code_bits);
  result.bits = static_cast<std::uint8_t>(code_bits + result.value_bits);
  return result;
}

// Codes count up from 0, and go on with a 0 behind them where the next length begins: T.81, Annex C.
bool HuffmanDecoder::make(const HuffmanSpec& spec, unsigned most_value_bits) {
  symbols_ = spec.symbols;
  short_codes_.fill({});
  std::uint32_t code = 0;
  std::size_t place = 0;
  for (unsigned length = 1; length <= 16; ++length, code <<= 1) {
    places_[length] = static_cast<std::int32_t>(place) - static_cast<std::int32_t>(code);
    for (unsigned i = 0; i < spec.counts[length]; ++i, ++code, ++place) {
      if (code >> length != 0 || (symbols_[place] & 15) > most_value_bits) return false;
      if (length > kShortBits) continue;
      const unsigned spare = kShortBits - length;
      std::fill_n(short_codes_.begin() + (code << spare), std::size_t{1} << spare, symbol_of(place, length));
    }
    ends_[length] = code << (16 - length);
  }
  return place > 0;
}

HuffmanSymbol HuffmanDecoder::find_long(std::uint64_t bits) const {
  const auto head = static_cast<std::uint32_t>(bits >> 48);
  for (unsigned length = kShortBits + 1; length <= 16; ++length) {
    if (head >= ends_[length]) continue;
    const auto code = static_cast<std::int32_t>(head >> (16 - length));
    const std::int32_t place = code + places_[length];
    if (place < 0 || place >= static_cast<std::int32_t>(symbols_.size())) break;
    return symbol_of(static_cast<std::size_t>(place), length);
  }
  return {};
}

}  // namespace ssd
