#include "image/jpeg_segments.hpp"

#include <algorithm>
#include <cstring>

#include "core/grown.hpp"
#include "image/jpeg_blocks.hpp"

namespace ssd {
namespace {

// As libjpeg decides what the components are.
bool is_ycbcr(const JpegHeaders& headers) {
  if (headers.has_jfif) return true;
  if (headers.adobe_transform) return *headers.adobe_transform == 1;
  const auto& c = headers.components;
  return !(c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B');
}

}  // namespace

bool SegmentDecoder::make_tables() {
  for (std::size_t c = 0; c < kSegmentComponents; ++c) {
    const JpegComponent& component = headers_.components[c];
    if (component.horizontal != 1 || component.vertical != 1) return false;
  }
  for (std::size_t i = 0; i < dc_.size(); ++i) {
    const auto* begin = headers_.components.begin();
    const auto* end = begin + kSegmentComponents;
    const bool is_dc = std::any_of(begin, end, [&](const JpegComponent& c) { return c.dc_table == i; });
    const bool is_ac = std::any_of(begin, end, [&](const JpegComponent& c) { return c.ac_table == i; });
    if (is_dc && !dc_[i].make(headers_.dc[i], HuffmanDecoder::kMostDcBits)) return false;
    if (is_ac && !ac_[i].make(headers_.ac[i], HuffmanDecoder::kMostAcBits)) return false;
  }
  return true;
}

RgbView SegmentDecoder::decode(std::span<const std::byte> bytes,
                               std::span<const std::uint32_t> segment_offsets, const PictureSize& size,
                               const PixelRect& rect, std::vector<std::uint8_t>& buffer) {
  if (segment_offsets.empty() || segment_offsets[0] > bytes.size()) return {};
  if (!read_jpeg_headers(bytes.first(segment_offsets[0]), headers_)) return {};
  if (headers_.component_count != kSegmentComponents || !is_ycbcr(headers_) || !make_tables()) return {};
  const int columns = headers_.columns(), interval = headers_.restart_interval;
  const int mcu_count = columns * headers_.rows();
  if (interval == 0 || columns % interval != 0 || size != PictureSize{headers_.width, headers_.height})
    return {};
  if (segment_offsets.size() != static_cast<std::size_t>(mcu_count / interval)) return {};

  std::array<ComponentTables, kSegmentComponents> tables{};
  std::array<QuantisationSteps, kSegmentComponents> steps{};
  for (std::size_t c = 0; c < kSegmentComponents; ++c) {
    const JpegComponent& component = headers_.components[c];
    tables[c] = {&dc_[component.dc_table], &ac_[component.ac_table]};
    for (std::size_t i = 0; i < kBlockSize; ++i)
      steps[c][kZigzag[i]] = headers_.quantisation[component.quantisation][i];
  }
  const int first_column = rect.left / kBlockSide, end_column = (rect.right - 1) / kBlockSide + 1;
  const int first_row = rect.top / kBlockSide, end_row = (rect.bottom - 1) / kBlockSide + 1;
  const auto row_bytes =
      static_cast<std::size_t>(end_column - first_column) * kBlockSide * 3 + kBytesBehindRow;
  const std::size_t mcu_row_bytes = row_bytes * kBlockSide;
  // One row more than there are: rows are decoded in pairs.
  std::uint8_t* pixels = grown(buffer, mcu_row_bytes * static_cast<std::size_t>(end_row - first_row + 1));
  const std::size_t segment_blocks = static_cast<std::size_t>(interval) * kSegmentComponents;
  blocks_.resize(segment_blocks * kBlockPairSize);
  last_.resize(segment_blocks);
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  for (int row = first_row; row < end_row; row += 2) {
    std::uint8_t* out = pixels + static_cast<std::size_t>(row - first_row) * mcu_row_bytes;
    for (int column = first_column; column < end_column;) {
      const int first = column % interval, end = std::min(interval, end_column - column + first);
      std::fill_n(blocks_.begin(), static_cast<std::size_t>(end) * kSegmentComponents * kBlockPairSize,
                  std::int16_t{0});
      std::fill_n(last_.begin(), static_cast<std::size_t>(end) * kSegmentComponents, std::uint8_t{0});
      for (int i = 0; i < std::min(2, end_row - row); ++i) {
        const auto segment = static_cast<std::size_t>(((row + i) * columns + column) / interval);
        const std::size_t begin_byte = segment_offsets[segment];
        const std::size_t end_byte =
            segment + 1 < segment_offsets.size() ? segment_offsets[segment + 1] : bytes.size();
        if (end_byte > bytes.size() || begin_byte + 2 > end_byte) return {};
        std::uint8_t* unstuffed = grown(segment_, end_byte - begin_byte + kBytesBehindSegment);
        const std::size_t byte_count =  // without the marker behind it
            copy_unstuffed(data + begin_byte, data + end_byte - 2, unstuffed);
        if (!read_mcus(unstuffed, byte_count, end == interval, tables, static_cast<std::size_t>(end),
                       blocks_.data() + i * kBlockSide, last_.data()))
          return {};
      }
      const auto skipped = static_cast<std::size_t>(first) * kSegmentComponents;
      if (!write_mcus(blocks_.data() + skipped * kBlockPairSize, last_.data() + skipped, steps, end - first,
                      out, out + mcu_row_bytes, row_bytes))
        return {};
      out += static_cast<std::size_t>(end - first) * kBlockSide * 3;
      column += end - first;
    }
  }
  const RgbView whole{pixels, (end_column - first_column) * kBlockSide, (end_row - first_row) * kBlockSide,
                      row_bytes};
  return crop_of(whole, {rect.left - first_column * kBlockSide, rect.top - first_row * kBlockSide,
                         rect.right - first_column * kBlockSide, rect.bottom - first_row * kBlockSide});
}

}  // namespace ssd
