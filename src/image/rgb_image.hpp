// 8-bit RGB pictures: pixels that are owned, and views of whole pictures or rectangles that someone else
// owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ssd {

// A header of 200 bytes may promise 65500 x 65500 pixels. Larger pictures than this are refused before memory
// is taken: 400 MB as RGB, and a few times that inside a decoder.
inline constexpr std::int64_t kLargestPictureInPixels = std::int64_t{1} << 27;

struct RgbImage {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;  // (height, width, 3) row-major, R G B
};

// Must not outlive the pixels.
struct RgbView {
  const std::uint8_t* pixels = nullptr;  // (height, width, 3) R G B, rows row_bytes apart
  int width = 0;
  int height = 0;
  std::size_t row_bytes = 0;
};

RgbView view_of(const RgbImage& image);

struct PictureSize {
  int width = 0;  // pixels
  int height = 0;
  friend bool operator==(const PictureSize&, const PictureSize&) = default;
};

// A rectangle of whole pixels: right and bottom are the first column and row outside.
struct PixelRect {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
  friend bool operator==(const PixelRect&, const PixelRect&) = default;
};

// Throws ContractError for an empty rectangle or one that leaves the picture.
void expect_inside(const PixelRect& rect, const PictureSize& size);
RgbView crop_of(const RgbView& view, const PixelRect& rect);

}  // namespace ssd
