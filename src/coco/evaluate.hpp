// A whole COCO bbox evaluation in one process: what pycocotools' evaluate() and accumulate() do. The same in
// parts, for several ranks: coco/match.hpp and coco/accumulate.hpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "coco/accumulate.hpp"
#include "coco/annotations.hpp"
#include "coco/detections.hpp"
#include "coco/evaluation_parameters.hpp"

namespace ssd {

struct Evaluation {
  EvaluationResult result;
  std::vector<std::string> warnings;  // lines for the user: what makes the numbers other than one may think
};

// Throws Error where a detection belongs to an image that is not in the set, or is not finite.
Evaluation evaluate(const EvaluationParameters& parameters, const AnnotationSet& set,
                    std::span<const Detection> detections, int threads = 1);

}  // namespace ssd
