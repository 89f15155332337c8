// From what the network found on a picture to COCO detections.
#pragma once

#include <span>
#include <vector>

#include "coco/detections.hpp"
#include "core/ids.hpp"
#include "model/detection_decode.hpp"

namespace ssd {

// Appends the boxes, in pixels of a picture of width x height, with the ids of their classes. category_ids:
// in the order of the labels, label 1 first.
void append_detections(const DecodedImage& decoded, ImageId image, int width, int height,
                       std::span<const CategoryId> category_ids, std::vector<Detection>& detections);

}  // namespace ssd
