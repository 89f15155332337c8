// The random changes of a training sample, as decisions: which crop, whether flipped, which colours. Pure
// functions of the boxes and a RandomStream; nothing here touches pixels. The rules are the reference's
// (SSDCropping and its fast colour path), after Liu et al. 2016, section 2.2 "Data augmentation".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boxes/box.hpp"
#include "core/random.hpp"
#include "image/color.hpp"
#include "image/resize.hpp"

namespace ssd {

struct Range {
  double low = 0;
  double high = 0;
};

struct AugmentationOptions {
  Range crop_side{0.3, 1};    // of a crop, in parts of the picture's side
  Range crop_aspect{0.5, 2};  // width to height of a crop, both in parts
  Range hue_degrees{-0.5, 0.5};
  Range saturation{0.5, 1.5};
  Range contrast{0.5, 1.5};
  Range brightness{0.875, 1.125};
  double flip_probability = 0.5;

  // Throws UsageError that names the option.
  void validate() const;
};

// What a crop has to fulfil.
enum class CropOption : std::uint8_t {
  whole,
  iou_above_10,
  iou_above_30,
  iou_above_50,
  iou_above_70,
  iou_above_90,
  any,
};

// A rectangle in parts of the picture's sides.
struct CropDraw {
  CropOption option = CropOption::whole;  // the one that ended the drawing; whole: the rectangle is 0 0 1 1
  double left = 0;
  double top = 0;
  double width = 1;
  double height = 1;
  int draws = 0;  // options drawn until it ended
};

// A CropOption is drawn and one crop tried for it; where the crop fails one is drawn again. A crop fails if
// its aspect is outside options.crop_aspect, if any box has an IoU with it that is not above the CropOption's
// minimum, or if no box has its centre strictly inside. After kMostCropDraws the whole picture is taken.
CropDraw draw_crop(std::span<const BoxLtrb> boxes, const AugmentationOptions& options, RandomStream& random);
inline constexpr int kMostCropDraws = 1000;  // "whole" comes up sooner but for a chance of (6/7)^1000

// The boxes of a sample, one label each.
struct SampleBoxes {
  std::vector<BoxLtrb> ltrb;  // in [0,1]
  std::vector<std::int32_t> labels;
};

// Boxes whose centre lies strictly inside the crop stay, in their order, clipped, in parts of the crop's
// sides.
void crop_boxes(const CropDraw& crop, SampleBoxes& boxes);

// The crop's pixels: corners truncated to whole pixels, never empty.
PixelRect pixel_rect(const CropDraw& crop, int width, int height);

void flip_boxes(SampleBoxes& boxes);

struct Augmentation {
  CropDraw crop;
  bool is_flipped = false;
  ColorChange color;
};

Augmentation draw_augmentation(std::span<const BoxLtrb> boxes, const AugmentationOptions& options,
                               RandomStream& random);

}  // namespace ssd
