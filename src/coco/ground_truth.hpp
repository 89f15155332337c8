// The ground truth of an evaluation, put into order before images are divided over ranks. Pure, thread safe.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "coco/annotations.hpp"
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

// The same of the annotations that are asked for. What replaces them may be one that is not.
GroundTruth resolve_ground_truth(std::span<const Annotation> annotations,
                                 const std::function<bool(const Annotation&)>& is_asked_for);

// The categories of a set in the order of the evaluation: ascending ids.
std::vector<CategoryId> evaluated_categories(const AnnotationSet& set);

}  // namespace ssd
