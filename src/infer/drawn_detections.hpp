// A picture with what was found on it, and beside it what is true, drawn. No torch.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "coco/annotations.hpp"
#include "coco/detections.hpp"
#include "image/jpeg.hpp"

namespace ssd {

// The colours and names of categories: those of the checkpoint first, then those that only the truth has.
class DetectionDrawer {
 public:
  // truth: null, or a set that outlives the drawer.
  DetectionDrawer(std::vector<Category> classes, float score_threshold, const AnnotationSet* truth);

  // Detections best first. With a truth, its boxes of the image are in a panel of their own at the left.
  RgbImage draw(const RgbImage& picture, ImageId id, std::span<const Detection> detections) const;

 private:
  std::int32_t label_of(CategoryId id) const;  // place among categories_ + 1: what decides the colour

  std::vector<Category> categories_;
  float score_threshold_;
  const AnnotationSet* truth_;
};

}  // namespace ssd
