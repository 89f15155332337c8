#include "eval/eval_report.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/atomic_file.hpp"

namespace ssd {
namespace {

using Json = nlohmann::ordered_json;

Json parameters_json(const EvaluationParameters& parameters) {
  Json ranges = Json::array();
  for (const auto& range : parameters.area_ranges)
    ranges.push_back({{"name", range.label}, {"low", range.low}, {"high", range.high}});
  return {{"iou_thresholds", parameters.iou_thresholds},
          {"recall_thresholds", parameters.recall_thresholds},
          {"max_detections", parameters.max_detections},
          {"area_ranges", ranges},
          {"use_categories", parameters.use_categories}};
}

Json stats_json(const EvalReport& report) {
  Json stats;
  const auto names = summary_names(report.result.parameters);
  for (std::size_t i = 0; i < names.size(); ++i) stats[names[i]] = report.summary[i];
  return stats;
}

Json categories_json(const std::vector<CategorySummary>& categories) {
  Json rows = Json::array();
  for (const auto& category : categories) {
    rows.push_back({{"id", category.id.value()},
                    {"name", category.name},
                    {"AP", category.ap},
                    {"AP50", category.ap50},
                    {"boxes", category.box_count}});
  }
  return rows;
}

Json arrays_json(const EvaluationResult& result) {
  const auto& parameters = result.parameters;
  const auto t = parameters.iou_thresholds.size(), r = parameters.recall_thresholds.size(),
             k = result.category_ids.size(), a = parameters.area_ranges.size(),
             m = parameters.max_detections.size();
  return {{"precision_shape", {t, r, k, a, m}}, {"precision", result.precision},
          {"recall_shape", {t, k, a, m}},       {"recall", result.recall},
          {"scores_shape", {t, r, k, a, m}},    {"scores", result.scores}};
}

}  // namespace

void write_report(const std::filesystem::path& path, const EvalReport& report, ReportArrays arrays) {
  Json json{{"stats", stats_json(report)},
            {"images", report.result.image_count},
            {"detections", report.detection_count},
            {"detections_of_unknown_images", report.unknown_image_count},
            {"detections_of_unknown_categories", report.result.unknown_category_count},
            {"warnings", report.warnings},
            {"parameters", parameters_json(report.result.parameters)},
            {"categories", categories_json(report.categories)}};
  if (arrays == ReportArrays::put_in) json["arrays"] = arrays_json(report.result);
  // A category's name may be no UTF-8 where it comes from shards: it is written with replacement characters.
  write_file_atomically(path, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Plot precision_recall_plot(const EvaluationResult& result) {
  constexpr std::size_t kMostCurves = 5;
  const auto& parameters = result.parameters;
  const auto& ranges = parameters.area_ranges;
  const auto all =
      std::find_if(ranges.begin(), ranges.end(), [](const auto& range) { return range.label == "all"; });
  const auto a = all == ranges.end() ? 0 : static_cast<std::size_t>(all - ranges.begin());
  const auto m = parameters.max_detections.size() - 1;
  const auto t_count = parameters.iou_thresholds.size();
  const auto step = (t_count + kMostCurves - 1) / kMostCurves;

  Plot plot{fmt::format("Precision over recall, area {}, {} detections", ranges[a].label,
                        parameters.max_detections[m]),
            "recall",
            "precision",
            {},
            {{0, 0}, {1, 1}}};
  for (std::size_t t = 0; t < t_count; t += step) {
    PlotSeries series{fmt::format("IoU {:.2f}", parameters.iou_thresholds[t]), {}};
    for (std::size_t r = 0; r < parameters.recall_thresholds.size(); ++r) {
      double sum = 0;
      std::size_t count = 0;
      for (std::size_t k = 0; k < result.category_ids.size(); ++k) {
        const double precision = result.precision[result.precision_index(t, r, k, a, m)];
        if (precision < 0) continue;
        sum += precision;
        ++count;
      }
      if (count != 0)
        series.points.push_back({parameters.recall_thresholds[r], sum / static_cast<double>(count)});
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

}  // namespace ssd
