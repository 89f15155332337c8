// The numbers people read: the twelve of COCO, and average precision by category. -1 says: no ground truth
// for this. Pure, thread safe.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "coco/accumulate.hpp"
#include "coco/annotations.hpp"
#include "core/ids.hpp"

namespace ssd {

// AP, AP50, AP75, AP small, medium, large; AR with 1, 10, 100 detections, AR small, medium, large:
// pycocotools' stats, to the last bit (with numpy's order of summation).
using Summary = std::array<double, 12>;

// Takes parameters with three limits of detections, IoU thresholds 0.5 and 0.75 and areas "all", "small",
// "medium", "large"; throws Error where there are not three limits, gives -1 where one of the others is not
// there.
Summary summarize(const EvaluationResult& result);

// Their names: AP, AP50, AP75, APs, APm, APl, AR1, AR10, AR100, ARs, ARm, ARl, with the limits of detections
// of the parameters in place of 1, 10 and 100.
std::array<std::string, 12> summary_names(const EvaluationParameters& parameters);

// The twelve lines as pycocotools prints them, each ending in a line feed.
std::string format_summary(const EvaluationParameters& parameters, const Summary& summary);

struct CategorySummary {
  CategoryId id;
  std::string name;
  double ap = -1;  // over all IoU thresholds; areas "all"; the largest limit of detections
  double ap50 = -1;
  std::int64_t box_count = 0;  // ground truth that counts: without crowds
};

// In the order of the evaluation: ascending ids. categories: for the names; one without an entry keeps its id
// as name.
std::vector<CategorySummary> summarize_categories(const EvaluationResult& result,
                                                  std::span<const Category> categories);

// A table with a line for each category; "-" where there is no ground truth.
std::string format_category_table(std::span<const CategorySummary> categories);

// Sum in numpy's order (pairwise over blocks of 128, eight running sums in a block).
double pairwise_sum(std::span<const double> values);

}  // namespace ssd
