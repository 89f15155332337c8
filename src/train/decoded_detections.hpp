// From what the network found on a picture to COCO detections.
#pragma once

#include <vector>

#include "coco/annotations.hpp"
#include "coco/detections.hpp"
#include "model/detection_decode.hpp"

namespace ssd {

// Appends the boxes, in pixels of a picture of width x height, with the ids of their classes. categories: in
// the order of the labels, label 1 first.
void append_detections(const DecodedImage& decoded, ImageId image, int width, int height,
                       const std::vector<Category>& categories, std::vector<Detection>& detections);

}  // namespace ssd
