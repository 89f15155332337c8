#include "image/orientation.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/grown.hpp"

namespace ssd {
namespace {

// Which side of the picture row 0 and column 0 of the stored raster are: the upright pixel (x, y) is the
// stored pixel (x, y), or (y, x) where transposed, counted from the other end where mirrored.
struct Turn {
  bool is_transposed;
  bool is_mirrored_x;  // in the stored raster
  bool is_mirrored_y;
};

Turn turn_of(int orientation) {
  SSD_EXPECT(orientation >= 1 && orientation <= 8);
  return {orientation >= 5, orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
          orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7};
}

}  // namespace

RgbView apply_orientation(const RgbView& stored, int orientation, std::vector<std::uint8_t>& buffer) {
  const Turn turn = turn_of(orientation);
  const int width = turn.is_transposed ? stored.height : stored.width;
  const int height = turn.is_transposed ? stored.width : stored.height;
  const auto row_bytes = static_cast<std::size_t>(width) * 3;
  std::uint8_t* target = grown(buffer, row_bytes * static_cast<std::size_t>(height));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x, target += 3) {
      int source_x = turn.is_transposed ? y : x;
      int source_y = turn.is_transposed ? x : y;
      if (turn.is_mirrored_x) source_x = stored.width - 1 - source_x;
      if (turn.is_mirrored_y) source_y = stored.height - 1 - source_y;
      const auto place =
          static_cast<std::size_t>(source_y) * stored.row_bytes + static_cast<std::size_t>(source_x) * 3;
      std::copy_n(stored.pixels + place, 3, target);
    }
  }
  return {buffer.data(), width, height, row_bytes};
}

RgbImage apply_orientation(const RgbImage& stored, int orientation) {
  RgbImage upright;
  const RgbView view = apply_orientation(view_of(stored), orientation, upright.pixels);
  upright.width = view.width;
  upright.height = view.height;
  return upright;
}

PictureSize stored_size(const PictureSize& upright, int orientation) {
  return turn_of(orientation).is_transposed ? PictureSize{upright.height, upright.width} : upright;
}

PixelRect stored_rect(const PixelRect& rect, int orientation, const PictureSize& upright) {
  const Turn turn = turn_of(orientation);
  const PictureSize size = stored_size(upright, orientation);
  PixelRect stored = rect;
  if (turn.is_transposed) stored = {rect.top, rect.left, rect.bottom, rect.right};
  if (turn.is_mirrored_x)
    stored = {size.width - stored.right, stored.top, size.width - stored.left, stored.bottom};
  if (turn.is_mirrored_y)
    stored = {stored.left, size.height - stored.bottom, stored.right, size.height - stored.top};
  return stored;
}

}  // namespace ssd
