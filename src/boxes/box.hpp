// A box as four floats, and the IoU of two of them in the order of operations that golden data was made with.
#pragma once

#include <algorithm>
#include <array>

namespace ssd {

using BoxLtrb = std::array<float, 4>;    // left, top, right, bottom in parts of the picture's sides
using BoxCxcywh = std::array<float, 4>;  // centre x, centre y, width, height in the same

inline BoxCxcywh cxcywh_of(const BoxLtrb& box) {
  return {0.5F * (box[0] + box[2]), 0.5F * (box[1] + box[3]), box[2] - box[0], box[3] - box[1]};
}

inline float area_of(const BoxLtrb& box) {
  return (box[2] - box[0]) * (box[3] - box[1]);
}

// Intersection over union in float32. Two boxes of no size give NaN.
inline float iou(const BoxLtrb& a, const BoxLtrb& b) {
  const float width = std::max(std::min(a[2], b[2]) - std::max(a[0], b[0]), 0.0F);
  const float height = std::max(std::min(a[3], b[3]) - std::max(a[1], b[1]), 0.0F);
  const float common = width * height;
  return common / ((area_of(a) + area_of(b)) - common);  // this order: exact ties depend on it
}

}  // namespace ssd
