// The second half of a COCO bbox evaluation: the matched outcomes of all images become precision, recall and
// score arrays, those of pycocotools 2.0.x (COCOeval.accumulate) to the last bit, however the images were
// divided and in whatever order the parts come. Pure, thread safe; called on one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coco/evaluation_parameters.hpp"
#include "coco/match_outcomes.hpp"
#include "core/ids.hpp"

namespace ssd {

// T IoU thresholds, R recall thresholds, K categories, A area ranges, M limits of detections. Cells of a
// category and area range without ground truth are -1.
struct EvaluationResult {
  EvaluationParameters parameters;
  std::vector<CategoryId> category_ids;  // ascending; where categories are not used the single -1
  std::vector<double> precision;         // (T, R, K, A, M)
  std::vector<double> recall;            // (T, K, A, M)
  std::vector<double> scores;            // (T, R, K, A, M): the score at which that recall is reached
  std::vector<std::int64_t> ground_truth_counts;  // (K, A)
  std::size_t image_count = 0;
  std::size_t unknown_category_count = 0;  // detections of categories that were not evaluated

  std::size_t precision_index(std::size_t t, std::size_t r, std::size_t k, std::size_t a,
                              std::size_t m) const {
    return (((t * parameters.recall_thresholds.size() + r) * category_ids.size() + k) *
                parameters.area_ranges.size() +
            a) *
               parameters.max_detections.size() +
           m;
  }
  std::size_t recall_index(std::size_t t, std::size_t k, std::size_t a, std::size_t m) const {
    return ((t * category_ids.size() + k) * parameters.area_ranges.size() + a) *
               parameters.max_detections.size() +
           m;
  }
};

// parameters and category_ids: those that the parts were matched with. Throws Error where a part was made
// with others, or where an image is in two parts. The result is the same for any number of threads.
EvaluationResult accumulate(const EvaluationParameters& parameters, std::span<const CategoryId> category_ids,
                            std::span<const MatchOutcomes> parts, int threads = 1);

}  // namespace ssd
