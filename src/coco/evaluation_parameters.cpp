#include "coco/evaluation_parameters.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace ssd {

std::vector<double> linspace(double first, double last, std::size_t count) {
  SSD_EXPECT(count >= 2);
  const double step = (last - first) / static_cast<double>(count - 1);
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i) * step + first;
  values.back() = last;
  return values;
}

void EvaluationParameters::validate() const {
  const auto finite = [](double value) { return std::isfinite(value); };
  SSD_VALIDATE(!iou_thresholds.empty() && std::all_of(iou_thresholds.begin(), iou_thresholds.end(), finite),
               "evaluation: the IoU thresholds must be one or more finite numbers");
  SSD_VALIDATE(!recall_thresholds.empty() &&
                   std::all_of(recall_thresholds.begin(), recall_thresholds.end(), finite) &&
                   std::is_sorted(recall_thresholds.begin(), recall_thresholds.end()),
               "evaluation: the recall thresholds must be one or more finite numbers in ascending order");
  SSD_VALIDATE(!area_ranges.empty() && area_ranges.size() <= kMostAreaRanges,
               "evaluation: there are {} area ranges, but there must be from 1 to {}", area_ranges.size(),
               kMostAreaRanges);
  for (const auto& range : area_ranges) {
    SSD_VALIDATE(range.low <= range.high, "evaluation: area range '{}' goes from {} to {}", range.label,
                 range.low, range.high);
  }
  SSD_VALIDATE(
      !max_detections.empty() && max_detections.front() > 0 &&
          std::is_sorted(max_detections.begin(), max_detections.end()),
      "evaluation: the limits of detections must be one or more positive numbers in ascending order");
}

}  // namespace ssd
