// Resizer beside Pillow, for resize_levels.py, which says what is compared. Reads a line "WIDTH HEIGHT
// COUNT", COUNT lines "LEFT TOP RIGHT BOTTOM" and the (HEIGHT, WIDTH, 3) levels of a picture, again and
// again, and answers with the (300, 300, 3) levels of each rectangle.
#include <iostream>
#include <vector>

#include "image/resize.hpp"

int main() {
  constexpr int kSide = 300;
  ssd::Resizer resizer;
  ssd::RgbImage image;
  std::vector<std::uint8_t> out(std::size_t{kSide} * kSide * 3);
  for (std::size_t count = 0; std::cin >> image.width >> image.height >> count;) {
    std::vector<ssd::PixelRect> rects(count);
    for (auto& [left, top, right, bottom] : rects) std::cin >> left >> top >> right >> bottom;
    std::cin.ignore(1);
    image.pixels.resize(static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 3);
    std::cin.read(reinterpret_cast<char*>(image.pixels.data()),
                  static_cast<std::streamsize>(image.pixels.size()));
    for (const auto& rect : rects) {
      resizer.resize(ssd::crop_of(ssd::view_of(image), rect), kSide, kSide, out.data());
      std::cout.write(reinterpret_cast<const char*>(out.data()), static_cast<std::streamsize>(out.size()));
    }
    std::cout.flush();
  }
}
