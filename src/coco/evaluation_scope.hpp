// Which images and categories an evaluation is about, and the detections and ground truth that belong to it:
// what pycocotools does with Params.imgIds and Params.catIds. Pure, thread safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "coco/annotations.hpp"
#include "coco/detections.hpp"
#include "coco/evaluation_parameters.hpp"
#include "coco/ground_truth.hpp"
#include "core/ids.hpp"

namespace ssd {

struct EvaluationScope {
  std::vector<ImageId> image_ids;        // ascending
  std::vector<CategoryId> category_ids;  // ascending
};

// Those wanted, or all of the set where none are named. Throws Error naming those that the set does not have.
EvaluationScope evaluation_scope(const AnnotationSet& set, std::span<const ImageId> wanted_images = {},
                                 std::span<const CategoryId> wanted_categories = {});

// The images of rank r out of n: every n-th.
std::vector<ImageId> share_of(std::span<const ImageId> image_ids, int rank, int world_size);

// The boxes of the images of the scope, to be matched. Of annotations that share an id the last one of the
// whole set counts, as in resolve_ground_truth; categories are looked at before it takes their place, but not
// where the parameters do not use them (pycocotools, COCOeval._prepare).
GroundTruth ground_truth_of(const EvaluationParameters& parameters, const AnnotationSet& set,
                            const EvaluationScope& scope);

// Keeps the boxes of these images. For a share of the images: ground_truth_of takes the scope as a whole,
// since the last annotation of an id may be another rank's.
void keep_boxes(std::span<const ImageId> image_ids, std::vector<Annotation>& boxes);

enum class UnknownImages { refuse, leave_out };

struct LeftOut {
  std::size_t unknown_images = 0;      // detections of images that are not in the set
  std::size_t unknown_categories = 0;  // of categories that are not in the set
};

// Keeps the detections of these images and categories, in their order. What belongs to images and categories
// of the set that are not in the scope goes without a word, what belongs to none of the set is counted.
// Throws Error where there are detections of unknown images and unknown says refuse.
LeftOut keep_detections(const AnnotationSet& set, const EvaluationScope& scope, UnknownImages unknown,
                        std::vector<Detection>& detections);

}  // namespace ssd
