// Boxes drawn on a picture, with their class and score, for people to look at: one panel, or several beside
// each other (what is true, what was found). Lines and letters grow with the picture. Local, thread safe;
// needs a font on the machine, which cairo's packages bring.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "image/jpeg.hpp"

namespace ssd {

struct DrawnBox {
  std::array<double, 4>
      box_xywh{};          // left, top, width, height in pixels of the picture; what lies outside is cut off
  std::int32_t label = 0;  // decides the colour
  std::string text;        // UTF-8, above the box, or within where there is no room; may be empty
};

struct Panel {
  std::string title;            // UTF-8, above the picture
  std::vector<DrawnBox> boxes;  // the first is drawn last, on top of the others
};

struct LegendEntry {
  std::int32_t label = 0;
  std::string text;  // UTF-8
};

// The panels from left to right, the legend below them. The picture is enlarged or made smaller where its
// longer side has less than kLeastSide or more than kMostSide pixels. Throws Error where cairo cannot draw,
// as for text that is not UTF-8.
inline constexpr int kLeastSide = 640;
inline constexpr int kMostSide = 2048;
RgbImage draw_panels(const RgbImage& picture, std::span<const Panel> panels,
                     std::span<const LegendEntry> legend);

// R G B. The first seven labels have colours that people with any kind of colour vision tell apart; none is
// repeated.
std::array<std::uint8_t, 3> class_color(std::int32_t label);

}  // namespace ssd
