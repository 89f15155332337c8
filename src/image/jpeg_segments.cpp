#include "image/jpeg_segments.hpp"

#include <algorithm>

#include "core/grown.hpp"

namespace ssd {
namespace {

// As libjpeg decides what the components are.
bool is_ycbcr(const JpegHeaders& headers) {
  if (headers.has_jfif) return true;
  if (headers.adobe_transform) return *headers.adobe_transform == 1;
  const auto& c = headers.components;
  return !(c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B');
}

// Chroma columns (or rows) that the pixels [begin, end) need: upsampling looks at the neighbours on both
// sides. Chroma that is as fine as luma needs its own alone.
struct ChromaSpan {
  int first;
  int end;
};
ChromaSpan chroma_of(int begin, int end, int scale, int count) {
  if (scale == 1) return {begin, end};
  return {std::max((begin - 1) / 2, 0), std::min(end / 2, count - 1) + 1};
}

}  // namespace

bool SegmentDecoder::plan_mcus() {
  const auto& c = headers_.components;
  layout_ = {};
  if (headers_.component_count == 1) {
    scale_ = {};
    layout_.block_count = 1;
    return true;
  }
  scale_ = {c[0].horizontal, c[0].vertical};
  if (headers_.component_count != kSegmentComponents || !is_ycbcr(headers_) || scale_.horizontal > 2 ||
      scale_.vertical > 2)
    return false;
  for (std::size_t i = 1; i < kSegmentComponents; ++i) {
    if (c[i].horizontal != 1 || c[i].vertical != 1) return false;
  }
  // Of two columns of chroma or fewer libjpeg-turbo makes pixels without its filter.
  if (scale_.horizontal == 2 && headers_.width <= 4) return false;
  const auto add = [this](int component, int x, int y) {
    layout_.blocks[layout_.block_count++] = {static_cast<std::uint8_t>(component),
                                             static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(y)};
  };
  for (int y = 0; y < scale_.vertical; ++y) {
    for (int x = 0; x < scale_.horizontal; ++x) add(0, x, y);
  }
  add(1, 0, 0);
  add(2, 0, 0);
  return true;
}

bool SegmentDecoder::make_tables() {
  const auto* begin = headers_.components.begin();
  const auto* end = begin + headers_.component_count;
  for (std::size_t i = 0; i < dc_.size(); ++i) {
    const bool is_dc = std::any_of(begin, end, [&](const JpegComponent& c) { return c.dc_table == i; });
    const bool is_ac = std::any_of(begin, end, [&](const JpegComponent& c) { return c.ac_table == i; });
    if (is_dc && !dc_[i].make(headers_.dc[i], HuffmanDecoder::kMostDcBits)) return false;
    if (is_ac && !ac_[i].make(headers_.ac[i], HuffmanDecoder::kMostAcBits)) return false;
  }
  for (std::size_t c = 0; c < headers_.component_count; ++c) {
    const JpegComponent& component = headers_.components[c];
    tables_[c] = {&dc_[component.dc_table], &ac_[component.ac_table]};
    for (std::size_t i = 0; i < kBlockSize; ++i)
      steps_[c][kZigzag[i]] = headers_.quantisation[component.quantisation][i];
  }
  return true;
}

// write(pairs, last, column, row, count): blocks of `count` MCUs from a column and row of the part on, and of
// those below; false where libjpeg is to be asked.
template <class Write>
bool SegmentDecoder::decode_runs(const Part& part, const Write& write) {
  const int columns = headers_.columns(), interval = headers_.restart_interval;
  const std::size_t blocks = layout_.block_count;
  blocks_.resize(static_cast<std::size_t>(interval) * blocks * kBlockPairSize);
  last_.resize(static_cast<std::size_t>(interval) * blocks);
  const auto offsets = part.segment_offsets;
  const auto* data = reinterpret_cast<const std::uint8_t*>(part.bytes.data());
  for (int row = part.first_row; row < part.end_row; row += 2) {
    for (int column = part.first_column; column < part.end_column;) {
      const int first = column % interval, end = std::min(interval, part.end_column - column + first);
      std::fill_n(blocks_.begin(), static_cast<std::size_t>(end) * blocks * kBlockPairSize, std::int16_t{0});
      std::fill_n(last_.begin(), static_cast<std::size_t>(end) * blocks, std::uint8_t{0});
      for (int i = 0; i < std::min(2, part.end_row - row); ++i) {
        const auto segment = static_cast<std::size_t>(((row + i) * columns + column) / interval);
        const std::size_t begin_byte = offsets[segment];
        const std::size_t end_byte = segment + 1 < offsets.size() ? offsets[segment + 1] : part.bytes.size();
        if (end_byte > part.bytes.size() || begin_byte + 2 > end_byte) return false;
        std::uint8_t* unstuffed = grown(segment_, end_byte - begin_byte + kBytesBehindSegment);
        const std::size_t byte_count =  // without the marker behind it
            copy_unstuffed(data + begin_byte, data + end_byte - 2, unstuffed);
        if (!read_mcus(unstuffed, byte_count, end == interval, tables_, layout_,
                       static_cast<std::size_t>(end), blocks_.data() + i * kBlockSide, last_.data()))
          return false;
      }
      const auto skipped = static_cast<std::size_t>(first) * blocks;
      if (!write(blocks_.data() + skipped * kBlockPairSize, last_.data() + skipped,
                 column - part.first_column, row - part.first_row, end - first))
        return false;
      column += end - first;
    }
  }
  return true;
}

// Chroma as fine as luma: blocks become pixels at once.
RgbView SegmentDecoder::decode_pixels(const Part& part, const PixelRect& rect,
                                      std::vector<std::uint8_t>& buffer) {
  const int columns = part.end_column - part.first_column, rows = part.end_row - part.first_row;
  const auto row_bytes = static_cast<std::size_t>(columns) * kBlockSide * 3 + kBytesBehindRow;
  const std::size_t mcu_row_bytes = row_bytes * kBlockSide;
  // One row more than there are: rows are decoded in pairs.
  std::uint8_t* pixels = grown(buffer, mcu_row_bytes * static_cast<std::size_t>(rows + 1));
  const bool is_done = decode_runs(
      part, [&](const std::int16_t* pairs, const std::uint8_t* last, int column, int row, int count) {
        std::uint8_t* out = pixels + static_cast<std::size_t>(row) * mcu_row_bytes + column * kBlockSide * 3;
        return write_mcus(pairs, last, steps_, count, out, out + mcu_row_bytes, row_bytes);
      });
  if (!is_done) return {};
  const RgbView whole{pixels, columns * kBlockSide, rows * kBlockSide, row_bytes};
  const int left = part.first_column * kBlockSide, top = part.first_row * kBlockSide;
  return crop_of(whole, {rect.left - left, rect.top - top, rect.right - left, rect.bottom - top});
}

// Other pictures' levels first.
RgbView SegmentDecoder::decode_planes(const Part& part, const PixelRect& rect,
                                      std::vector<std::uint8_t>& buffer) {
  const auto columns = static_cast<std::size_t>(part.end_column - part.first_column);
  const auto rows = static_cast<std::size_t>(part.end_row - part.first_row);
  std::array<std::size_t, kSegmentComponents> mcu_widths{}, mcu_heights{};
  for (std::size_t c = 0; c < headers_.component_count; ++c) {
    mcu_widths[c] = kBlockSide * static_cast<std::size_t>(c == 0 ? scale_.horizontal : 1);
    mcu_heights[c] = kBlockSide * static_cast<std::size_t>(c == 0 ? scale_.vertical : 1);
    planes_[c].row_bytes = columns * mcu_widths[c];
    // One row of MCUs more than there are: rows are decoded in pairs.
    grown(planes_[c].levels, planes_[c].row_bytes * (rows + 1) * mcu_heights[c] + kLevelSlack);
  }
  const bool is_done = decode_runs(
      part, [&](const std::int16_t* pairs, const std::uint8_t* last, int column, int row, int count) {
        std::array<LevelRows, kSegmentComponents> out;
        for (std::size_t c = 0; c < headers_.component_count; ++c) {
          Plane& plane = planes_[c];
          const std::size_t mcu_row_bytes = plane.row_bytes * mcu_heights[c];
          std::uint8_t* first = plane.levels.data() + static_cast<std::size_t>(row) * mcu_row_bytes +
                                static_cast<std::size_t>(column) * mcu_widths[c];
          out[c] = {first, first + mcu_row_bytes, plane.row_bytes, mcu_widths[c]};
        }
        return write_levels(pairs, last, steps_, layout_, static_cast<std::size_t>(count), out);
      });
  if (!is_done) return {};
  const int width = rect.right - rect.left, height = rect.bottom - rect.top;
  const auto row_bytes = static_cast<std::size_t>(width) * 3;
  std::uint8_t* pixels = grown(buffer, row_bytes * static_cast<std::size_t>(height) + 3 * kLevelSlack);
  color_rows(part, rect, pixels);
  return {pixels, width, height, row_bytes};
}

// Each row may be written a bit too far, which the next one mends.
void SegmentDecoder::color_rows(const Part& part, const PixelRect& rect, std::uint8_t* out) {
  const auto width = static_cast<std::size_t>(rect.right - rect.left);
  const int luma_left = part.first_column * kBlockSide * scale_.horizontal;
  const int luma_top = part.first_row * kBlockSide * scale_.vertical;
  const int chroma_left = part.first_column * kBlockSide, chroma_top = part.first_row * kBlockSide;
  const int chroma_columns = (headers_.width + scale_.horizontal - 1) / scale_.horizontal;
  const int chroma_rows = (headers_.height + scale_.vertical - 1) / scale_.vertical;
  const int chroma_right = std::min(part.end_column * kBlockSide, chroma_columns);
  // The columns of chroma whose pixels are wanted.
  const int first = rect.left / scale_.horizontal, end = (rect.right - 1) / scale_.horizontal + 1;
  const auto skipped = static_cast<std::size_t>(rect.left - first * scale_.horizontal);
  for (int y = rect.top; y < rect.bottom; ++y, out += width * 3) {
    const std::uint8_t* luma =
        planes_[0].row(static_cast<std::size_t>(y - luma_top)) + (rect.left - luma_left);
    if (headers_.component_count == 1) {
      gray_row(luma, width, out);
      continue;
    }
    const int near = y / scale_.vertical;
    const bool is_lower = scale_.vertical == 2 && y % 2 == 1;
    const int far =
        scale_.vertical == 1 ? near : std::clamp(is_lower ? near + 1 : near - 1, 0, chroma_rows - 1);
    for (std::size_t c = 0; c < 2; ++c) {
      const Plane& plane = planes_[c + 1];
      const std::size_t pixels = static_cast<std::size_t>(end - first) * 2;
      upsamplers_[c].widen(plane.row(static_cast<std::size_t>(near - chroma_top)),
                           plane.row(static_cast<std::size_t>(far - chroma_top)), scale_, is_lower,
                           static_cast<std::size_t>(chroma_left), static_cast<std::size_t>(chroma_right),
                           static_cast<std::size_t>(first), static_cast<std::size_t>(end - first),
                           grown(chroma_[c], pixels + 2 * kLevelSlack));
    }
    color_row(luma, chroma_[0].data() + skipped, chroma_[1].data() + skipped, width, out);
  }
}

RgbView SegmentDecoder::decode(std::span<const std::byte> bytes,
                               std::span<const std::uint32_t> segment_offsets, const PictureSize& size,
                               const PixelRect& rect, std::vector<std::uint8_t>& buffer) {
  if (segment_offsets.empty() || segment_offsets[0] > bytes.size()) return {};
  if (!read_jpeg_headers(bytes.first(segment_offsets[0]), headers_)) return {};
  if (!plan_mcus() || !make_tables()) return {};
  const int columns = headers_.columns(), interval = headers_.restart_interval;
  const int mcu_count = columns * headers_.rows();
  if (interval == 0 || columns % interval != 0 || size != PictureSize{headers_.width, headers_.height})
    return {};
  if (segment_offsets.size() != static_cast<std::size_t>(mcu_count / interval)) return {};

  const ChromaSpan x = chroma_of(rect.left, rect.right, scale_.horizontal,
                                 (headers_.width + scale_.horizontal - 1) / scale_.horizontal);
  const ChromaSpan y = chroma_of(rect.top, rect.bottom, scale_.vertical,
                                 (headers_.height + scale_.vertical - 1) / scale_.vertical);
  const Part part{bytes,
                  segment_offsets,
                  x.first / kBlockSide,
                  (x.end - 1) / kBlockSide + 1,
                  y.first / kBlockSide,
                  (y.end - 1) / kBlockSide + 1};
  const bool is_full =
      headers_.component_count == kSegmentComponents && scale_.horizontal == 1 && scale_.vertical == 1;
  return is_full ? decode_pixels(part, rect, buffer) : decode_planes(part, rect, buffer);
}

}  // namespace ssd
