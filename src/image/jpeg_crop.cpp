#include "image/jpeg_crop.hpp"

#include <algorithm>

#include "image/jpeg_headers.hpp"

namespace ssd {
namespace {

constexpr unsigned kRst0 = 0xD0, kEoi = 0xD9;  // markers, ITU-T T.81, Annex B

unsigned byte_at(std::span<const std::byte> bytes, std::size_t place) {
  return std::to_integer<unsigned>(bytes[place]);
}

void put_number(std::span<std::byte> bytes, std::size_t place, int number) {
  bytes[place] = static_cast<std::byte>(number >> 8);
  bytes[place + 1] = static_cast<std::byte>(number);
}

// [first, end) of MCUs in one direction.
struct McuSpan {
  int first;
  int end;
};

// The MCUs that pixels [begin, end) need, in steps of `step` MCUs. Where chroma is subsampled one more on
// each side, because upsampling looks at neighbours.
McuSpan needed(int begin, int end, int mcu_side, int count, int step, bool is_subsampled) {
  const int margin = is_subsampled ? 1 : 0;
  const int first = std::max(begin / mcu_side - margin, 0);
  const int last = std::min((end - 1) / mcu_side + margin, count - 1);
  return {first / step * step, std::min((last / step + 1) * step, count)};
}

}  // namespace

bool splice_jpeg(std::span<const std::byte> bytes, const RestartIndex& restarts, const PictureSize& size,
                 const PixelRect& rect, SplicedJpeg& spliced) {
  const auto offsets = restarts.offsets;
  JpegHeaders grid;
  if (restarts.interval_mcus == 0 || offsets.empty() || offsets[0] > bytes.size()) return false;
  if (!read_jpeg_headers(bytes.first(offsets[0]), grid)) return false;
  if (grid.restart_interval != static_cast<int>(restarts.interval_mcus)) return false;
  if (size != PictureSize{grid.width, grid.height}) return false;

  // A segment is a part of a row of MCUs, or some rows.
  const int interval = grid.restart_interval;
  const bool is_part = grid.columns() % interval == 0;
  if (!is_part && interval % grid.columns() != 0) return false;
  const McuSpan columns = needed(rect.left, rect.right, grid.mcu_width, grid.columns(),
                                 is_part ? interval : grid.columns(), grid.is_subsampled());
  const McuSpan rows = needed(rect.top, rect.bottom, grid.mcu_height, grid.rows(),
                              is_part ? 1 : interval / grid.columns(), grid.is_subsampled());
  const auto segment_of = [&](int row, int column) {
    return static_cast<std::size_t>(row * grid.columns() + column) / static_cast<std::size_t>(interval);
  };
  const std::size_t count = segment_of(grid.rows() - 1, grid.columns() - 1) + 1;
  if (offsets.size() != count) return false;

  auto& out = spliced.bytes;
  out.assign(bytes.begin(), bytes.begin() + offsets[0]);
  spliced.left = columns.first * grid.mcu_width;
  spliced.top = rows.first * grid.mcu_height;
  spliced.size.width = std::min(columns.end * grid.mcu_width, grid.width) - spliced.left;
  spliced.size.height = std::min(rows.end * grid.mcu_height, grid.height) - spliced.top;
  put_number(out, grid.size_place, spliced.size.height);
  put_number(out, grid.size_place + 2, spliced.size.width);

  // The segments of a row lie one after the other, each with its marker behind it; the markers count
  // modulo 8.
  unsigned number = 0;
  const int row_step = is_part ? 1 : rows.end - rows.first;
  for (int row = rows.first; row < rows.end; row += row_step) {
    const std::size_t first = segment_of(row, columns.first);
    const std::size_t last = segment_of(row + row_step - 1, columns.end - 1);
    const std::size_t begin = offsets[first], end = last + 1 < count ? offsets[last + 1] : bytes.size();
    if (begin > end || end > bytes.size()) return false;
    const std::size_t start = out.size();
    out.insert(out.end(), bytes.begin() + static_cast<std::ptrdiff_t>(begin),
               bytes.begin() + static_cast<std::ptrdiff_t>(end));
    for (std::size_t i = first; i <= last; ++i) {
      const std::size_t marker_end = i + 1 < count ? offsets[i + 1] : bytes.size();
      if (marker_end < begin + 2 || marker_end > end) return false;
      const unsigned marker = i + 1 < count ? kRst0 + static_cast<unsigned>(i % 8) : kEoi;
      if (byte_at(bytes, marker_end - 2) != 0xFF || byte_at(bytes, marker_end - 1) != marker) return false;
      out[start + (marker_end - begin) - 1] = static_cast<std::byte>(kRst0 + number++ % 8);
    }
  }
  out.back() = static_cast<std::byte>(kEoi);  // in place of the last restart marker
  return true;
}

RgbView JpegCropDecoder::decode(std::span<const std::byte> bytes, const RestartIndex& restarts,
                                const PictureSize& size, const PixelRect& rect) {
  if (restarts.interval_mcus != 0) {
    const RgbView view = segments_.decode(bytes, restarts.offsets, size, rect, pixels_);
    if (view.pixels != nullptr) return view;
  }
  if (!splice_jpeg(bytes, restarts, size, rect, spliced_))
    return decoder_.decode_rect(bytes, size, rect, pixels_);
  const PixelRect in_spliced{rect.left - spliced_.left, rect.top - spliced_.top, rect.right - spliced_.left,
                             rect.bottom - spliced_.top};
  return decoder_.decode_rect(spliced_.bytes, spliced_.size, in_spliced, pixels_);
}

}  // namespace ssd
