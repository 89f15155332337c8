// A plain COCO bbox evaluator for comparison: slow, step by step as pycocotools does it, sharing nothing with
// the evaluator it checks but the data types.
#pragma once

#include <span>
#include <vector>

#include "coco/annotations.hpp"
#include "coco/detections.hpp"
#include "coco/evaluation_parameters.hpp"

namespace ssd {

struct ReferenceResult {
  std::vector<double> precision;  // (T, R, K, A, M)
  std::vector<double> recall;     // (T, K, A, M)
  std::vector<double> scores;     // (T, R, K, A, M)
};

ReferenceResult reference_evaluation(const EvaluationParameters& parameters, const AnnotationSet& set,
                                     std::span<const Detection> detections);

}  // namespace ssd
