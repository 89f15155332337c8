// Matching of detections to ground truth, image by image: the first half of a COCO bbox evaluation, with the
// results of pycocotools 2.0.x (COCOeval.evaluateImg) to the last bit. An image needs only its own boxes, so
// every rank matches the images it has. Pure functions, thread safe.
//
// The order that all results depend on: images by id, categories by id, detections of one image and category
// by score, equal scores in the order they were given in. So the division of images over ranks changes
// nothing, but the detections of one image must keep their order.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "coco/annotations.hpp"
#include "coco/detections.hpp"
#include "coco/evaluation_parameters.hpp"
#include "coco/ground_truth.hpp"
#include "coco/match_outcomes.hpp"
#include "core/ids.hpp"

namespace ssd {

struct MatchInput {
  std::span<const CategoryId> category_ids;  // ascending; the same on every rank
  std::span<const ImageId> image_ids;        // to match here, in any order, each once
  std::span<const Annotation> ground_truth;  // of these images, out of GroundTruth::boxes
  std::span<const Detection> detections;     // of these images
};

// Throws Error where a box belongs to an image that is not in image_ids, or where a score or box is not
// finite. Detections of other categories are left out and counted. The result is the same for any number of
// threads.
MatchOutcomes match_images(const EvaluationParameters& parameters, const MatchInput& input, int threads = 1);

}  // namespace ssd
