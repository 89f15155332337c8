#include "data/augmentation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace ssd {
namespace {

// Minimum IoU of each CropOption; reference, SSDCropping (Liu et al. 2016 have the same list without "any").
constexpr std::array<double, 7> kMinimumIou = {
    0, 0.1, 0.3, 0.5, 0.7, 0.9, -std::numeric_limits<double>::infinity()};

double iou_with(const CropDraw& crop, const BoxLtrb& box) {
  const double left = box[0], top = box[1], right = box[2], bottom = box[3];
  const double width = std::min(right, crop.left + crop.width) - std::max(left, crop.left);
  const double height = std::min(bottom, crop.top + crop.height) - std::max(top, crop.top);
  const double common = std::max(width, 0.0) * std::max(height, 0.0);
  return common / ((right - left) * (bottom - top) + crop.width * crop.height - common);
}

bool has_centre_of(const CropDraw& crop, const BoxLtrb& box) {
  const double x = 0.5 * (double{box[0]} + box[2]);
  const double y = 0.5 * (double{box[1]} + box[3]);
  return crop.left < x && x < crop.left + crop.width && crop.top < y && y < crop.top + crop.height;
}

// False where the one try fails.
bool try_crop(std::span<const BoxLtrb> boxes, const AugmentationOptions& options, RandomStream& random,
              CropDraw& crop) {
  crop.width = random.uniform(options.crop_side.low, options.crop_side.high);
  crop.height = random.uniform(options.crop_side.low, options.crop_side.high);
  const double aspect = crop.width / crop.height;
  if (aspect < options.crop_aspect.low || aspect > options.crop_aspect.high) return false;
  crop.left = random.uniform(0, 1 - crop.width);
  crop.top = random.uniform(0, 1 - crop.height);
  const double minimum = kMinimumIou[static_cast<std::size_t>(crop.option)];
  return std::all_of(boxes.begin(), boxes.end(),
                     [&](const BoxLtrb& box) { return iou_with(crop, box) > minimum; }) &&
         std::any_of(boxes.begin(), boxes.end(),
                     [&](const BoxLtrb& box) { return has_centre_of(crop, box); });
}

float part(double position, double start, double length) {
  return static_cast<float>(std::clamp((position - start) / length, 0.0, 1.0));
}

int whole_pixel(double position, int pixels) {
  return static_cast<int>(position * pixels);
}

void validate_range(const char* name, const Range& range, double lowest, double highest) {
  if (!(lowest <= range.low && range.low <= range.high && range.high <= highest)) {
    throw UsageError(fmt::format("{} from {} to {}: must be from {} to {}, the lower number first", name,
                                 range.low, range.high, lowest, highest));
  }
}

}  // namespace

void AugmentationOptions::validate() const {
  validate_range("crop side", crop_side, 0.01, 1);
  validate_range("crop aspect", crop_aspect, 0.01, 100);
  // The ends of a range are drawn with no chance, unless they are one number.
  const Range aspects{crop_side.low / crop_side.high, crop_side.high / crop_side.low};
  const bool is_possible = crop_side.low == crop_side.high ? crop_aspect.low <= 1 && 1 <= crop_aspect.high
                                                           : std::max(crop_aspect.low, aspects.low) <
                                                                 std::min(crop_aspect.high, aspects.high);
  if (!is_possible) {
    throw UsageError(fmt::format(
        "crop aspect from {} to {}: no crop with sides from {} to {} has it; those have {} to {}",
        crop_aspect.low, crop_aspect.high, crop_side.low, crop_side.high, aspects.low, aspects.high));
  }
  validate_range("hue (degrees)", hue_degrees, -180, 180);
  validate_range("saturation", saturation, 0,
                 4);  // factors up to 4 keep the colour matrix in its fixed-point range
  validate_range("contrast", contrast, 0, 4);
  validate_range("brightness", brightness, 0, 4);
  if (!(0 <= flip_probability && flip_probability <= 1)) {
    throw UsageError(fmt::format("flip probability {}: must be from 0 to 1", flip_probability));
  }
}

CropDraw draw_crop(std::span<const BoxLtrb> boxes, const AugmentationOptions& options, RandomStream& random) {
  for (int draws = 1; draws <= kMostCropDraws; ++draws) {
    CropDraw crop;
    crop.option = static_cast<CropOption>(random.below(kMinimumIou.size()));
    crop.draws = draws;
    if (crop.option == CropOption::whole || try_crop(boxes, options, random, crop)) return crop;
  }
  return {.draws = kMostCropDraws};
}

void crop_boxes(const CropDraw& crop, SampleBoxes& boxes) {
  if (crop.option == CropOption::whole) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < boxes.ltrb.size(); ++i) {
    const BoxLtrb& box = boxes.ltrb[i];
    if (!has_centre_of(crop, box)) continue;
    boxes.labels[kept] = boxes.labels[i];
    boxes.ltrb[kept++] = {part(box[0], crop.left, crop.width), part(box[1], crop.top, crop.height),
                          part(box[2], crop.left, crop.width), part(box[3], crop.top, crop.height)};
  }
  boxes.ltrb.resize(kept);
  boxes.labels.resize(kept);
}

PixelRect pixel_rect(const CropDraw& crop, int width, int height) {
  SSD_EXPECT(width > 0 && height > 0);
  PixelRect rect;
  rect.left = std::min(whole_pixel(crop.left, width), width - 1);
  rect.top = std::min(whole_pixel(crop.top, height), height - 1);
  rect.right = std::clamp(whole_pixel(crop.left + crop.width, width), rect.left + 1, width);
  rect.bottom = std::clamp(whole_pixel(crop.top + crop.height, height), rect.top + 1, height);
  return rect;
}

void flip_boxes(SampleBoxes& boxes) {
  for (BoxLtrb& box : boxes.ltrb) box = {1 - box[2], box[1], 1 - box[0], box[3]};
}

Augmentation draw_augmentation(std::span<const BoxLtrb> boxes, const AugmentationOptions& options,
                               RandomStream& random) {
  const auto within = [&](const Range& range) { return random.uniform(range.low, range.high); };
  Augmentation drawn;
  drawn.crop = draw_crop(boxes, options, random);
  drawn.is_flipped = random.uniform() < options.flip_probability;
  drawn.color.hue_degrees = within(options.hue_degrees);
  drawn.color.saturation = within(options.saturation);
  drawn.color.contrast = within(options.contrast);
  drawn.color.brightness = within(options.brightness);
  return drawn;
}

}  // namespace ssd
