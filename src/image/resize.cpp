#include "image/resize.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace ssd {
namespace {

// Output rows that go on to their colours together: what the horizontal pass has just written in pieces
// cannot yet be read again in whole vectors.
constexpr int kRowsTogether = 8;

// Output rows before its use that a source row is fetched into the cache: pictures of the decoded cache come
// from far.
constexpr int kRowsAhead = 1;
constexpr int kCacheLine = 64;  // bytes

}  // namespace

// One row of row_, of the output's height and the source's width.
void Resizer::mix_rows(const RgbView& source, int out_row) {
  const int taps = vertical_.tap_count;
  const auto first = static_cast<std::size_t>(vertical_.first[static_cast<std::size_t>(out_row)]);
  for (std::size_t tap = 0; tap < rows_.size(); ++tap)
    rows_[tap] = source.pixels + (first + tap) * source.row_bytes;
  row_mixer_.mix(rows_.data(), &vertical_.weights[static_cast<std::size_t>(out_row * taps)], taps,
                 static_cast<std::size_t>(source.width) * 3, row_.data());
}

// Rows up to this one.
void Resizer::fetch(const RgbView& source, int end_row) {
  for (; fetched_rows_ < end_row; ++fetched_rows_) {
    const std::uint8_t* row = source.pixels + static_cast<std::size_t>(fetched_rows_) * source.row_bytes;
    for (int at = 0; at < source.width * 3; at += kCacheLine) __builtin_prefetch(row + at);
  }
}

void Resizer::resize(const RgbView& source, int width, int height, std::uint8_t* out,
                     const ResizeOptions& options) {
  SSD_EXPECT(source.width > 0 && source.height > 0 && width > 0 && height > 0);
  horizontal_.make(source.width, width);
  vertical_.make(source.height, height);
  if (options.is_flipped) horizontal_.flip();
  column_mixer_.prepare(horizontal_);
  rows_.resize(static_cast<std::size_t>(vertical_.tap_count));
  row_.resize(static_cast<std::size_t>(source.width) * 3 + ColumnMixer::kRowSlack);
  const std::size_t out_bytes = static_cast<std::size_t>(width) * 3;
  scaled_.resize(kRowsTogether * out_bytes + ColumnMixer::kOutSlack);

  fetched_rows_ = 0;
  for (int first = 0; first < height; first += kRowsTogether, out += kRowsTogether * out_bytes) {
    const int count = std::min(kRowsTogether, height - first);
    for (int i = 0; i < count; ++i) {
      mix_rows(source, first + i);
      const int ahead = std::min(first + i + kRowsAhead, height - 1);
      fetch(source, vertical_.first[static_cast<std::size_t>(ahead)] + vertical_.tap_count);
      column_mixer_.mix(row_.data(), scaled_.data() + static_cast<std::size_t>(i) * out_bytes);
    }
    const auto pixels = static_cast<std::size_t>(count) * static_cast<std::size_t>(width);
    if (options.color != nullptr) {
      apply_color(*options.color, scaled_.data(), pixels, out);
    } else {
      std::copy_n(scaled_.data(), pixels * 3, out);
    }
  }
}

}  // namespace ssd
