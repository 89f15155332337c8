#include "image/jpeg_crop.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace ssd {
namespace {

// Markers and their data: ITU-T T.81, Annex B.
constexpr unsigned kSof0 = 0xC0, kSof1 = 0xC1, kDht = 0xC4, kDac = 0xCC, kSof15 = 0xCF;
constexpr unsigned kRst0 = 0xD0, kEoi = 0xD9, kSos = 0xDA, kDqt = 0xDB, kDri = 0xDD;
constexpr unsigned kApp0 = 0xE0, kApp14 = 0xEE;
constexpr int kBlockSide = 8;  // pixels

unsigned byte_at(std::span<const std::byte> bytes, std::size_t place) {
  return std::to_integer<unsigned>(bytes[place]);
}

int number_at(std::span<const std::byte> bytes, std::size_t place) {
  return static_cast<int>(byte_at(bytes, place) << 8 | byte_at(bytes, place + 1));
}

void put_number(std::span<std::byte> bytes, std::size_t place, int number) {
  bytes[place] = static_cast<std::byte>(number >> 8);
  bytes[place + 1] = static_cast<std::byte>(number);
}

// What a JPEG's headers say of the grid of its MCUs.
struct Grid {
  int width = 0;  // pixels
  int height = 0;
  int mcu_width = 0;
  int mcu_height = 0;
  bool is_subsampled = false;
  int restart_interval = 0;
  std::size_t size_place = 0;  // of the frame's height and width among the headers that are kept

  int columns() const { return (width + mcu_width - 1) / mcu_width; }
  int rows() const { return (height + mcu_height - 1) / mcu_height; }
};

bool is_frame(unsigned marker) {
  return kSof0 <= marker && marker <= kSof15 && marker != kDht && marker != 0xC8 && marker != kDac;
}

// The data of a baseline frame marker, from its precision on. False for anything else than 8 bits and whole
// sampling factors.
bool read_frame(std::span<const std::byte> data, Grid& grid) {
  if (data.size() < 6 || byte_at(data, 0) != 8) return false;
  grid.height = number_at(data, 1);
  grid.width = number_at(data, 3);
  const std::size_t components = byte_at(data, 5);
  if (grid.width == 0 || grid.height == 0 || components == 0 || data.size() != 6 + 3 * components) return false;
  int horizontal = 1, vertical = 1;  // the largest sampling factors
  for (std::size_t i = 0; i < components; ++i) {
    const unsigned factors = byte_at(data, 7 + 3 * i);
    horizontal = std::max(horizontal, static_cast<int>(factors >> 4));
    vertical = std::max(vertical, static_cast<int>(factors & 15));
  }
  if (components == 1) horizontal = vertical = 1;  // T.81, A.2.2: an MCU is one block
  grid.mcu_width = horizontal * kBlockSide;
  grid.mcu_height = vertical * kBlockSide;
  grid.is_subsampled = horizontal > 1 || vertical > 1;
  return true;
}

// Copies the headers that decoding needs, up to and with the start of the scan, and reads the grid. Nothing
// where they are not those of a baseline JPEG with all components in one scan.
std::optional<Grid> copy_headers(std::span<const std::byte> headers, std::vector<std::byte>& out) {
  Grid grid;
  unsigned components = 0;
  if (headers.size() < 2) return std::nullopt;
  out.assign(headers.begin(), headers.begin() + 2);  // SOI
  for (std::size_t at = 2; at + 4 <= headers.size();) {
    if (byte_at(headers, at) != 0xFF) return std::nullopt;
    const unsigned marker = byte_at(headers, at + 1);
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    const auto length = static_cast<std::size_t>(number_at(headers, at + 2));
    if (length < 2 || length > headers.size() - at - 2) return std::nullopt;
    const auto segment = headers.subspan(at, length + 2);
    const auto data = segment.subspan(4);
    at += segment.size();
    if (is_frame(marker)) {
      if ((marker != kSof0 && marker != kSof1) || components != 0 || !read_frame(data, grid))
        return std::nullopt;
      components = byte_at(data, 5);
      grid.size_place = out.size() + 5;
    } else if (marker == kDri) {
      if (data.size() != 2) return std::nullopt;
      grid.restart_interval = number_at(data, 0);
    } else if (marker != kDht && marker != kDqt && marker != kSos && marker != kApp0 && marker != kApp14) {
      continue;
    }
    out.insert(out.end(), segment.begin(), segment.end());
    if (marker == kSos) {
      const bool is_whole =
          at == headers.size() && components != 0 && !data.empty() && byte_at(data, 0) == components;
      return is_whole ? std::optional(grid) : std::nullopt;
    }
  }
  return std::nullopt;
}

// [first, end) of MCUs in one direction.
struct Span {
  int first;
  int end;
};

// The MCUs that pixels [begin, end) need, in steps of `step` MCUs. Where chroma is subsampled one more on each
// side, because upsampling looks at neighbours.
Span needed(int begin, int end, int mcu_side, int count, int step, bool is_subsampled) {
  const int margin = is_subsampled ? 1 : 0;
  const int first = std::max(begin / mcu_side - margin, 0);
  const int last = std::min((end - 1) / mcu_side + margin, count - 1);
  return {first / step * step, std::min((last / step + 1) * step, count)};
}

}  // namespace

bool splice_jpeg(std::span<const std::byte> bytes, const RestartIndex& restarts, const PixelRect& rect,
                 SplicedJpeg& spliced) {
  const auto offsets = restarts.offsets;
  if (restarts.interval_mcus == 0 || offsets.empty() || offsets[0] > bytes.size()) return false;
  auto& out = spliced.bytes;
  const auto read = copy_headers(bytes.first(offsets[0]), out);
  if (!read || read->restart_interval != static_cast<int>(restarts.interval_mcus)) return false;
  const Grid& grid = *read;
  if (rect.right > grid.width || rect.bottom > grid.height) return false;

  // A segment is a part of a row of MCUs, or some rows.
  const int interval = grid.restart_interval;
  const bool is_part = grid.columns() % interval == 0;
  if (!is_part && interval % grid.columns() != 0) return false;
  const Span columns = needed(rect.left, rect.right, grid.mcu_width, grid.columns(),
                              is_part ? interval : grid.columns(), grid.is_subsampled);
  const Span rows = needed(rect.top, rect.bottom, grid.mcu_height, grid.rows(),
                           is_part ? 1 : interval / grid.columns(), grid.is_subsampled);
  const auto segment_of = [&](int row, int column) {
    return static_cast<std::size_t>(row * grid.columns() + column) / static_cast<std::size_t>(interval);
  };
  const std::size_t count = segment_of(grid.rows() - 1, grid.columns() - 1) + 1;
  if (offsets.size() != count) return false;

  const int width = std::min(columns.end * grid.mcu_width, grid.width) - columns.first * grid.mcu_width;
  const int height = std::min(rows.end * grid.mcu_height, grid.height) - rows.first * grid.mcu_height;
  put_number(out, grid.size_place, height);
  put_number(out, grid.size_place + 2, width);

  // The segments of a row lie one after the other, each with its marker behind it; the markers count modulo 8.
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
  spliced.left = columns.first * grid.mcu_width;
  spliced.top = rows.first * grid.mcu_height;
  return true;
}

RgbView JpegCropDecoder::decode(std::span<const std::byte> bytes, const RestartIndex& restarts,
                                const PixelRect& rect) {
  if (!splice_jpeg(bytes, restarts, rect, spliced_)) return decoder_.decode_rect(bytes, rect, pixels_);
  const PixelRect in_spliced{rect.left - spliced_.left, rect.top - spliced_.top, rect.right - spliced_.left,
                             rect.bottom - spliced_.top};
  return decoder_.decode_rect(spliced_.bytes, in_spliced, pixels_);
}

}  // namespace ssd
