// Colour augmentation of 8-bit RGB as the reference's DALI pipeline does it: hue and saturation, then
// brightness and contrast, as one 3x3 matrix and offset with one rounding at the end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>


namespace ssd {

struct ColorChange {
  double hue_degrees = 0;
  double saturation = 1;
  double contrast = 1;
  double brightness = 1;
};

// out = matrix * (r, g, b) + offset, in levels 0 to 255.
struct ColorTransform {
  std::array<std::array<double, 3>, 3> matrix{};
  double offset = 0;  // the same for the three channels
};

ColorTransform color_transform(const ColorChange& change);

// levels: (count, 3) R G B; out likewise, elsewhere. Results are rounded to the nearest level and clamped to
// 0 to 255. Coefficients are taken to 1/4096; throws ContractError for ones beyond +-64.
void apply_color(const ColorTransform& transform, const std::uint8_t* levels, std::size_t count,
                 std::uint8_t* out);

}  // namespace ssd
