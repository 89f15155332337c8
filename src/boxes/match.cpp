#include "boxes/match.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "boxes/default_boxes.hpp"
#include "core/error.hpp"
#include "core/vector_clones.hpp"

namespace ssd {
namespace {

// Fixed trip counts let the compiler make whole vectors of the loops below.
constexpr int kBlock = 96;
constexpr int kPadded = (kDefaultBoxCount + kBlock - 1) / kBlock * kBlock;
constexpr int kBlockCount = kPadded / kBlock;

struct Columns {
  const float* left;
  const float* top;
  const float* right;
  const float* bottom;
  const float* area;
};

// IoU of one ground truth with a block of default boxes; keeps the best ground truth of each. Returns the
// bits of the block's highest IoU: floats that are not negative have the order of their bits, and integers
// have a maximum that vectorises.
SSD_VECTOR_CLONES std::int32_t match_block(const Columns& boxes, const BoxLtrb& truth,
                                           std::int32_t truth_index, float* __restrict ious,
                                           float* __restrict best_iou, std::int32_t* __restrict best) {
  const float truth_area = area_of(truth);
  std::int32_t highest = 0;
  for (int i = 0; i < kBlock; ++i) {
    const float width = std::min(truth[2], boxes.right[i]) - std::max(truth[0], boxes.left[i]);
    const float height = std::min(truth[3], boxes.bottom[i]) - std::max(truth[1], boxes.top[i]);
    const float common = (width > 0 ? width : 0.0F) * (height > 0 ? height : 0.0F);
    const float value = common / ((truth_area + boxes.area[i]) - common);
    ious[i] = value;
    best[i] = value > best_iou[i] ? truth_index : best[i];  // strict: the first ground truth among equals
    best_iou[i] = value > best_iou[i] ? value : best_iou[i];
    highest = std::max(highest, std::bit_cast<std::int32_t>(value));
  }
  return highest;
}

void expect_proper(const BoxLtrb& box) {
  SSD_EXPECT(std::isfinite(box[0]) && std::isfinite(box[1]) && std::isfinite(box[2]) &&
             std::isfinite(box[3]));
  SSD_EXPECT(box[0] <= box[2] && box[1] <= box[3]);
}

}  // namespace

// The padding: no point in common with anything, area 1 so that the IoU is 0 and never 0/0.
BoxMatcher::BoxMatcher()
    : left_(kPadded, 1e30F),
      top_(kPadded, 1e30F),
      right_(kPadded, 1e30F),
      bottom_(kPadded, 1e30F),
      area_(kPadded, 1.0F),
      iou_(kPadded),
      best_iou_(kPadded),
      best_(kPadded) {
  const std::vector<BoxLtrb>& boxes = default_boxes().ltrb;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    left_[i] = boxes[i][0];
    top_[i] = boxes[i][1];
    right_[i] = boxes[i][2];
    bottom_[i] = boxes[i][3];
    area_[i] = area_of(boxes[i]);
  }
}

void BoxMatcher::match(std::span<const BoxLtrb> boxes, std::span<std::int32_t> matched_box) {
  SSD_EXPECT(matched_box.size() == kDefaultBoxCount);
  std::fill(best_iou_.begin(), best_iou_.end(), 0.0F);
  std::fill(best_.begin(), best_.end(), kBackground);

  forced_.clear();
  for (std::size_t truth = 0; truth < boxes.size(); ++truth) {
    expect_proper(boxes[truth]);
    std::int32_t highest = -1;
    std::size_t highest_block = 0;
    for (std::size_t block = 0; block < kBlockCount; ++block) {
      const std::size_t at = block * kBlock;
      const Columns columns{&left_[at], &top_[at], &right_[at], &bottom_[at], &area_[at]};
      const std::int32_t value = match_block(columns, boxes[truth], static_cast<std::int32_t>(truth),
                                             &iou_[at], &best_iou_[at], &best_[at]);
      if (value > highest) {  // strict: the first default box among equals
        highest = value;
        highest_block = block;
      }
    }
    const auto first = iou_.begin() + static_cast<std::ptrdiff_t>(highest_block * kBlock);
    const auto own = std::find(first, iou_.end(), std::bit_cast<float>(highest));
    forced_.push_back(static_cast<std::size_t>(own - iou_.begin()));
  }

  for (std::size_t i = 0; i < matched_box.size(); ++i) {
    matched_box[i] = best_iou_[i] > kMatchIouThreshold ? best_[i] : kBackground;
  }
  for (std::size_t truth = 0; truth < boxes.size(); ++truth) {
    matched_box[forced_[truth]] = static_cast<std::int32_t>(truth);
  }
}

std::array<float, 4> location_target(const BoxLtrb& box, const BoxCxcywh& default_box) {
  const BoxCxcywh truth = cxcywh_of(box);
  return {(truth[0] - default_box[0]) / default_box[2] / kCentreVariance,
          (truth[1] - default_box[1]) / default_box[3] / kCentreVariance,
          std::log(truth[2] / default_box[2]) / kSizeVariance,
          std::log(truth[3] / default_box[3]) / kSizeVariance};
}

}  // namespace ssd
