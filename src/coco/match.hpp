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
#include "coco/match_outcomes.hpp"
#include "core/ids.hpp"

namespace ssd {

// The ground truth as pycocotools sees it. Its index holds the last annotation of each id only, so every
// annotation is replaced by the last one with its id, even one of another image; and a match with id 0 counts
// as none.
struct GroundTruth {
  std::vector<Annotation> boxes;      // by image id; within an image in the order of the file
  std::vector<std::string> warnings;  // a line for each of the two surprises above, where it happens
};

// Takes the annotations of all images, in the order of the file: call it before images are divided over
// ranks.
GroundTruth resolve_ground_truth(std::span<const Annotation> annotations);

// The categories of a set in the order of the evaluation: ascending ids.
std::vector<CategoryId> evaluated_categories(const AnnotationSet& set);

struct MatchInput {
  std::span<const CategoryId> category_ids;  // ascending; the same on every rank
  std::span<const ImageId> image_ids;        // to match here, in any order, each once
  std::span<const Annotation> ground_truth;  // of these images, out of GroundTruth::boxes
  std::span<const Detection> detections;     // of these images
};

// Throws Error where a box belongs to an image that is not in image_ids, or where a score or box is not
// finite. Detections of other categories are left out and counted.
MatchOutcomes match_images(const EvaluationParameters& parameters, const MatchInput& input);

}  // namespace ssd
