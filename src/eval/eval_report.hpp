// What ssd_eval leaves in files: all numbers as JSON, and curves of precision over recall. Pure but for the
// writing; files are written whole or not at all. Throws Error where that fails.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "coco/accumulate.hpp"
#include "coco/annotations.hpp"
#include "coco/summary.hpp"
#include "report/plot.hpp"

namespace ssd {

struct EvalReport {
  EvaluationResult result;
  Summary summary{};
  std::vector<CategorySummary> categories;
  std::size_t detection_count = 0;      // in the results file
  std::size_t unknown_image_count = 0;  // of them, left out
  std::vector<std::string> warnings;
};

// {"stats": {"AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"}, ...}:
// the names of AR are those of the limits of detections. Doubles are written so that they read back the same.
enum class ReportArrays { leave_out, put_in };
void write_report(const std::filesystem::path& path, const EvalReport& report, ReportArrays arrays);

// Precision over recall at some of the IoU thresholds: the mean over categories with ground truth, areas
// "all" (the first range where there is none of that name), the largest limit of detections.
Plot precision_recall_plot(const EvaluationResult& result);

}  // namespace ssd
