#include "image/rgb_image.hpp"

#include "core/error.hpp"

namespace ssd {

RgbView view_of(const RgbImage& image) {
  return {image.pixels.data(), image.width, image.height, static_cast<std::size_t>(image.width) * 3};
}

void expect_inside(const PixelRect& rect, const PictureSize& size) {
  SSD_EXPECT(0 <= rect.left && rect.left < rect.right && rect.right <= size.width);
  SSD_EXPECT(0 <= rect.top && rect.top < rect.bottom && rect.bottom <= size.height);
}

RgbView crop_of(const RgbView& view, const PixelRect& rect) {
  expect_inside(rect, {view.width, view.height});
  const std::size_t offset =
      static_cast<std::size_t>(rect.top) * view.row_bytes + static_cast<std::size_t>(rect.left) * 3;
  return {view.pixels + offset, rect.right - rect.left, rect.bottom - rect.top, view.row_bytes};
}

}  // namespace ssd
