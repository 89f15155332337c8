#include "coco/evaluate.hpp"

#include <fmt/format.h>

#include "coco/match.hpp"

namespace ssd {

Evaluation evaluate(const EvaluationParameters& parameters, const AnnotationSet& set,
                    std::span<const Detection> detections, int threads) {
  const auto category_ids = evaluated_categories(set);
  std::vector<ImageId> image_ids;
  for (const auto& image : set.images) image_ids.push_back(image.id);
  auto ground_truth = resolve_ground_truth(set.annotations);

  const auto outcomes =
      match_images(parameters, {category_ids, image_ids, ground_truth.boxes, detections}, threads);
  Evaluation evaluation{accumulate(parameters, category_ids, {&outcomes, 1}, threads),
                        std::move(ground_truth.warnings)};
  if (outcomes.unknown_category_count != 0) {
    evaluation.warnings.push_back(fmt::format(
        "{} of {} detections are of categories that are not in the ground truth; they do not count",
        outcomes.unknown_category_count, detections.size()));
  }
  return evaluation;
}

}  // namespace ssd
