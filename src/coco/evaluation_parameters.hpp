// What a COCO bbox evaluation measures: thresholds, size classes and limits. The defaults are those of
// pycocotools 2.0 (Params.setDetParams), to the last bit.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ssd {

// count doubles from first to last, with the bits of numpy.linspace (which are not those of first + i *
// 0.05).
std::vector<double> linspace(double first, double last, std::size_t count);

inline constexpr std::size_t kMostAreaRanges = 31;  // bits beside one flag (coco/match_outcomes.hpp)

struct AreaRange {
  std::string label;
  double low = 0;  // pixels^2; both ends are inside the range
  double high = 0;
};

struct EvaluationParameters {
  std::vector<double> iou_thresholds = linspace(0.5, 0.95, 10);
  std::vector<double> recall_thresholds = linspace(0.0, 1.0, 101);  // ascending
  std::vector<AreaRange> area_ranges = {
      {"all", 0.0, 1e10}, {"small", 0.0, 1024.0}, {"medium", 1024.0, 9216.0}, {"large", 9216.0, 1e10}};
  std::vector<int> max_detections = {1, 10, 100};  // per image and category, ascending
  bool use_categories = true;  // false: the boxes of all categories count as of one (Params.useCats = 0)

  void validate() const;  // throws Error
};

}  // namespace ssd
