// The evaluation as several ranks do it, in one process: images dealt out in turn, outcomes sent as bytes,
// parts taken in another order than that of the ranks.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "coco/accumulate.hpp"
#include "coco/match.hpp"

namespace ssd {

inline EvaluationResult evaluate_in_parts(const EvaluationParameters& parameters, const AnnotationSet& set,
                                          std::span<const Detection> detections, std::size_t part_count) {
  struct Part {
    std::vector<ImageId> image_ids;
    std::vector<Annotation> ground_truth;
    std::vector<Detection> detections;
  };
  std::vector<Part> parts(part_count);
  std::map<ImageId, std::size_t> part_of;
  for (std::size_t i = 0; i < set.images.size(); ++i) {
    const auto id = set.images[i].id;
    part_of[id] = i % part_count;
    parts[i % part_count].image_ids.push_back(id);
  }
  const auto ground_truth = resolve_ground_truth(set.annotations);
  for (const auto& box : ground_truth.boxes) parts[part_of.at(box.image_id)].ground_truth.push_back(box);
  for (const auto& detection : detections)
    parts[part_of.at(detection.image_id)].detections.push_back(detection);

  const auto category_ids = evaluated_categories(set);
  std::vector<MatchOutcomes> outcomes(part_count);
  for (std::size_t i = 0; i < part_count; ++i) {
    const auto& part = parts[i];
    const auto bytes = to_bytes(
        match_images(parameters, {category_ids, part.image_ids, part.ground_truth, part.detections}));
    outcomes[(2 * part_count - 2 - i) % part_count] = match_outcomes_from_bytes(bytes);
  }
  return accumulate(parameters, category_ids, outcomes);
}

}  // namespace ssd
