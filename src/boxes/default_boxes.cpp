#include "boxes/default_boxes.hpp"

#include <cmath>

#include "core/error.hpp"

namespace ssd {
namespace {

constexpr double kInputPixels = 300;

struct Shape {
  double width = 0;
  double height = 0;
};

// Shapes of one map's boxes in parts of the input: Liu et al. 2016, section 2.2.
std::vector<Shape> shapes_of(std::size_t map) {
  const double scale = kBoxScales[map] / kInputPixels;
  const double next_scale = kBoxScales[map + 1] / kInputPixels;
  const double mean = std::sqrt(scale * next_scale);
  std::vector<Shape> shapes = {{scale, scale}, {mean, mean}};
  for (const int ratio : kAspectRatios[map]) {
    if (ratio == 0) continue;
    const double root = std::sqrt(static_cast<double>(ratio));
    shapes.push_back({scale * root, scale / root});
    shapes.push_back({scale / root, scale * root});
  }
  return shapes;
}

// Computed in double, rounded once, then clamped.
float rounded(double value) {
  return std::clamp(static_cast<float>(value), 0.0F, 1.0F);
}

BoxLtrb ltrb_of(const BoxCxcywh& box) {
  const auto [cx, cy, width, height] = box;
  return {cx - 0.5F * width, cy - 0.5F * height, cx + 0.5F * width, cy + 0.5F * height};
}

DefaultBoxes make_default_boxes() {
  DefaultBoxes boxes;
  for (std::size_t map = 0; map < kMapCount; ++map) {
    const double cells = kInputPixels / kMapSteps[map];
    for (const Shape& shape : shapes_of(map)) {
      for (int row = 0; row < kMapSides[map]; ++row) {
        for (int column = 0; column < kMapSides[map]; ++column) {
          boxes.cxcywh.push_back({rounded((column + 0.5) / cells), rounded((row + 0.5) / cells),
                                  rounded(shape.width), rounded(shape.height)});
        }
      }
    }
  }
  for (const BoxCxcywh& box : boxes.cxcywh) boxes.ltrb.push_back(ltrb_of(box));
  SSD_EXPECT(boxes.cxcywh.size() == kDefaultBoxCount);
  return boxes;
}

}  // namespace

const DefaultBoxes& default_boxes() {
  static const DefaultBoxes boxes = make_default_boxes();
  return boxes;
}

int first_default_box(int map) {
  SSD_EXPECT(map >= 0 && map <= kMapCount);
  int first = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(map); ++i) {
    first += kMapSides[i] * kMapSides[i] * kBoxesPerCell[i];
  }
  return first;
}

}  // namespace ssd
