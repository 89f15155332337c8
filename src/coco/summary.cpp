#include "coco/summary.hpp"

#include <algorithm>
#include <optional>

#include "core/error.hpp"

namespace ssd {
namespace {

enum class Measure { precision, recall };

struct SummaryRow {
  Measure measure;
  std::optional<double> iou_threshold;  // none: the mean over all
  const char* area;
  std::size_t limit_index;
};

// pycocotools, COCOeval._summarizeDets.
constexpr std::array<SummaryRow, 12> kRows{{
    {Measure::precision, std::nullopt, "all", 2},
    {Measure::precision, 0.5, "all", 2},
    {Measure::precision, 0.75, "all", 2},
    {Measure::precision, std::nullopt, "small", 2},
    {Measure::precision, std::nullopt, "medium", 2},
    {Measure::precision, std::nullopt, "large", 2},
    {Measure::recall, std::nullopt, "all", 0},
    {Measure::recall, std::nullopt, "all", 1},
    {Measure::recall, std::nullopt, "all", 2},
    {Measure::recall, std::nullopt, "small", 2},
    {Measure::recall, std::nullopt, "medium", 2},
    {Measure::recall, std::nullopt, "large", 2},
}};

std::vector<std::size_t> chosen_thresholds(const EvaluationParameters& parameters,
                                           std::optional<double> wanted) {
  std::vector<std::size_t> chosen;
  for (std::size_t t = 0; t < parameters.iou_thresholds.size(); ++t) {
    if (!wanted || parameters.iou_thresholds[t] == *wanted) chosen.push_back(t);
  }
  return chosen;
}

std::optional<std::size_t> area_index(const EvaluationParameters& parameters, std::string_view label) {
  for (std::size_t a = 0; a < parameters.area_ranges.size(); ++a) {
    if (parameters.area_ranges[a].label == label) return a;
  }
  return std::nullopt;
}

// numpy.mean of the values above -1; -1 where there is none.
double mean_of_present(std::vector<double>& values) {
  std::erase_if(values, [](double value) { return !(value > -1); });
  if (values.empty()) return -1;
  return pairwise_sum(values) / static_cast<double>(values.size());
}

struct CategoryRange {
  std::size_t begin;
  std::size_t end;
};

double mean_measure(const EvaluationResult& result, const SummaryRow& row, CategoryRange categories) {
  const auto area = area_index(result.parameters, row.area);
  if (!area) return -1;
  std::vector<double> values;
  for (const auto t : chosen_thresholds(result.parameters, row.iou_threshold)) {
    if (row.measure == Measure::recall) {
      for (std::size_t k = categories.begin; k < categories.end; ++k) {
        values.push_back(result.recall[result.recall_index(t, k, *area, row.limit_index)]);
      }
      continue;
    }
    for (std::size_t r = 0; r < result.parameters.recall_thresholds.size(); ++r) {
      for (std::size_t k = categories.begin; k < categories.end; ++k) {
        values.push_back(result.precision[result.precision_index(t, r, k, *area, row.limit_index)]);
      }
    }
  }
  return mean_of_present(values);
}

std::string or_dash(double value) {
  return value < 0 ? "-" : fmt::format("{:.3f}", value);
}

}  // namespace

double pairwise_sum(std::span<const double> values) {
  const auto n = values.size();
  if (n < 8) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
  }
  if (n <= 128) {
    std::array<double, 8> sums{};
    std::copy_n(values.begin(), 8, sums.begin());
    std::size_t i = 8;
    for (; i + 8 <= n; i += 8) {
      for (std::size_t j = 0; j < 8; ++j) sums[j] += values[i + j];
    }
    double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; i < n; ++i) sum += values[i];
    return sum;
  }
  const auto half = n / 2 - n / 2 % 8;
  return pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half));
}

Summary summarize(const EvaluationResult& result) {
  SSD_VALIDATE(result.parameters.max_detections.size() == 3,
               "evaluation: the summary takes three limits of detections, not {}",
               result.parameters.max_detections.size());
  Summary summary{};
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    summary[i] = mean_measure(result, kRows[i], {0, result.category_ids.size()});
  }
  return summary;
}

std::array<std::string, 12> summary_names(const EvaluationParameters& parameters) {
  SSD_EXPECT(parameters.max_detections.size() == 3);
  const auto ar = [&](std::size_t limit) { return fmt::format("AR{}", parameters.max_detections[limit]); };
  return {"AP", "AP50", "AP75", "APs", "APm", "APl", ar(0), ar(1), ar(2), "ARs", "ARm", "ARl"};
}

std::string format_summary(const EvaluationParameters& parameters, const Summary& summary) {
  SSD_EXPECT(parameters.max_detections.size() == 3);
  const auto all_thresholds =
      fmt::format("{:.2f}:{:.2f}", parameters.iou_thresholds.front(), parameters.iou_thresholds.back());
  std::string text;
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const auto& row = kRows[i];
    const bool is_precision = row.measure == Measure::precision;
    text += fmt::format(" {:<18} {} @[ IoU={:<9} | area={:>6s} | maxDets={:>3d} ] = {:0.3f}\n",
                        is_precision ? "Average Precision" : "Average Recall", is_precision ? "(AP)" : "(AR)",
                        row.iou_threshold ? fmt::format("{:.2f}", *row.iou_threshold) : all_thresholds,
                        row.area, parameters.max_detections[row.limit_index], summary[i]);
  }
  return text;
}

std::vector<CategorySummary> summarize_categories(const EvaluationResult& result,
                                                  std::span<const Category> categories) {
  const auto last_limit = result.parameters.max_detections.size() - 1;
  const auto area = area_index(result.parameters, "all");
  std::vector<CategorySummary> summaries;
  for (std::size_t k = 0; k < result.category_ids.size(); ++k) {
    CategorySummary summary;
    summary.id = result.category_ids[k];
    const auto entry = std::find_if(categories.begin(), categories.end(),
                                    [&](const Category& category) { return category.id == summary.id; });
    if (!result.parameters.use_categories) {
      summary.name = "all";
    } else {
      summary.name = entry != categories.end() ? entry->name : fmt::format("{}", summary.id.value());
    }
    summary.ap = mean_measure(result, {Measure::precision, std::nullopt, "all", last_limit}, {k, k + 1});
    summary.ap50 = mean_measure(result, {Measure::precision, 0.5, "all", last_limit}, {k, k + 1});
    if (area)
      summary.box_count = result.ground_truth_counts[k * result.parameters.area_ranges.size() + *area];
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

std::string format_category_table(std::span<const CategorySummary> categories) {
  std::size_t width = std::string_view("category").size();
  for (const auto& category : categories) width = std::max(width, category.name.size());
  std::string text = fmt::format("{:<{}}      AP    AP50    boxes\n", "category", width);
  for (const auto& category : categories) {
    text += fmt::format("{:<{}}  {:>6}  {:>6}  {:>7}\n", category.name, width, or_dash(category.ap),
                        or_dash(category.ap50), category.box_count);
  }
  return text;
}

}  // namespace ssd
