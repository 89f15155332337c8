#include "eval/eval_run.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <future>

#include "coco/evaluation_scope.hpp"
#include "coco/match.hpp"
#include "comm/agreement.hpp"
#include "core/atomic_file.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "data/open_on_ranks.hpp"
#include "eval/eval_report.hpp"
#include "eval/shard_annotations.hpp"
#include "eval/wanted.hpp"
#include "report/progress.hpp"

namespace ssd {
namespace {

int thread_count(int wanted, const MpiComm& world) {
  if (wanted != 0) return wanted;
  if (world.world_size() > 1) return 1;
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

// What one rank has read and matched.
struct OwnPart {
  std::vector<Category> categories;
  std::vector<CategoryId> category_ids;
  MatchOutcomes outcomes;
  std::size_t detection_count = 0;
  std::size_t unknown_image_count = 0;
  std::vector<std::string> warnings;
};

class EvaluationRun {
 public:
  EvaluationRun(const EvalOptions& options, const MpiComm& world)
      : options_(options), world_(world), threads_(thread_count(options.threads, world)) {}

  std::optional<EvalReport> run() {
    auto of_shards = read_shards();
    OwnPart part;
    run_in_agreement(world_, [&] { part = read_and_match(std::move(of_shards)); });
    std::vector<MatchOutcomes> parts;
    if (world_.world_size() == 1) {
      parts.push_back(std::move(part.outcomes));
    } else {
      for (const auto& bytes : world_.gather(to_bytes(part.outcomes)))
        parts.push_back(match_outcomes_from_bytes(bytes));
    }
    std::optional<EvalReport> report;
    run_in_agreement(world_, [&] {
      if (world_.is_root()) report = report_of(part, parts);
    });
    return report;
  }

 private:
  // The ground truth where it is a folder of shards. Collective.
  std::optional<AnnotationSet> read_shards() const {
    std::error_code ignored;
    const auto is_folder = std::int64_t{std::filesystem::is_directory(options_.ground_truth, ignored)};
    if (world_.reduce_all(is_folder, ReduceOperation::max) == 0) return std::nullopt;
    return annotation_set_of(open_on_ranks(world_, options_.ground_truth, options_.split));
  }

  OwnPart read_and_match(std::optional<AnnotationSet> of_shards) const {
    // One after the other where there is one thread: then the results are not in memory yet.
    const auto policy = threads_ > 1 ? std::launch::async : std::launch::deferred;
    auto reading = std::async(policy, [this, &of_shards] {
      return of_shards ? std::move(*of_shards)
                       : read_annotations(options_.ground_truth, AnnotationUse::scores);
    });
    if (policy == std::launch::deferred) reading.wait();
    auto detections = read_results();
    auto set = reading.get();
    auto scope =
        evaluation_scope(set, wanted_images(options_.images), wanted_categories(options_.categories, set));

    OwnPart part;
    part.category_ids = scope.category_ids;
    part.detection_count = detections.size();
    auto truth = ground_truth_of(options_.parameters, set, scope);
    part.warnings = std::move(truth.warnings);
    const auto warn = [&part, &set](std::size_t count, const char* text) {
      if (count != 0)
        part.warnings.push_back(fmt::format("{} of {} annotations {}", count, set.annotations.size(), text));
    };
    warn(set.missing_area_count, "have no area; width x height is taken for it");
    warn(set.missing_iscrowd_count, "have no iscrowd; they are taken for single objects");
    if (world_.world_size() > 1) {
      scope.image_ids = share_of(scope.image_ids, world_.rank(), world_.world_size());
      keep_boxes(scope.image_ids, truth.boxes);
    }
    const auto left_out = keep_own(set, scope, detections);
    part.unknown_image_count = left_out.unknown_images;
    part.categories = std::move(set.categories);
    part.outcomes = match_images(options_.parameters,
                                 {scope.category_ids, scope.image_ids, truth.boxes, detections}, threads_);
    part.outcomes.unknown_category_count += left_out.unknown_categories;
    return part;
  }

  LeftOut keep_own(const AnnotationSet& set, const EvaluationScope& scope,
                   std::vector<Detection>& detections) const {
    const bool has_all =
        scope.image_ids.size() == set.images.size() && scope.category_ids.size() == set.categories.size();
    if (has_all && !options_.ignores_unknown_images) return {};  // match_images refuses and counts
    const auto unknown = options_.ignores_unknown_images ? UnknownImages::leave_out : UnknownImages::refuse;
    return keep_detections(set, scope, unknown, detections);
  }

  std::vector<Detection> read_results() const {
    Progress progress("reading results", "detections", 0);
    ReadOptions read;
    read.threads = threads_;
    read.on_progress = [&progress](std::size_t count) { progress.advance(count); };
    auto detections = read_detections(options_.results, read);
    progress.finish();
    return detections;
  }

  EvalReport report_of(OwnPart& part, std::span<const MatchOutcomes> parts) const {
    EvalReport report;
    report.result = accumulate(options_.parameters, part.category_ids, parts, threads_);
    report.summary = summarize(report.result);
    report.categories = summarize_categories(report.result, part.categories);
    report.detection_count = part.detection_count;
    report.unknown_image_count = part.unknown_image_count;
    report.warnings = std::move(part.warnings);
    add_counted_warnings(report);
    return report;
  }

  static void add_counted_warnings(EvalReport& report) {
    const auto add = [&report](std::size_t count, const char* what) {
      if (count == 0) return;
      report.warnings.push_back(
          fmt::format("{} of {} detections are of {} that are not in the ground truth; "
                      "they do not count",
                      count, report.detection_count, what));
    };
    add(report.unknown_image_count, "images");
    add(report.result.unknown_category_count, "categories");
  }

  const EvalOptions& options_;
  const MpiComm& world_;
  int threads_;
};

// The numbers first: they are not lost where a file cannot be written.
void publish(const EvalReport& report, const EvalOptions& options) {
  for (const auto& warning : report.warnings) log_warning("{}", warning);
  if (std::find(report.summary.begin(), report.summary.end(), -1) != report.summary.end())
    log_info("note: -1.000 says that there is no ground truth of this kind");
  auto text = format_summary(report.result.parameters, report.summary);
  if (options.shows_categories) text += "\n" + format_category_table(report.categories);
  const bool is_printed = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  if (!options.json.empty()) {
    write_report(options.json, report,
                 options.json_has_arrays ? ReportArrays::put_in : ReportArrays::leave_out);
  }
  if (!options.plot.empty()) write_plot(options.plot, precision_recall_plot(report.result));
  SSD_VALIDATE(is_printed, "cannot write the numbers to standard output");
}

}  // namespace

std::optional<EvalReport> evaluate_files(const EvalOptions& options, const MpiComm& world) {
  return EvaluationRun(options, world).run();
}

int run_evaluation_program(const EvalOptions& options, const MpiComm& world) {
  run_in_agreement(world, [&] {
    if (!world.is_root()) return;
    for (const auto& path : {options.json, options.plot}) {
      if (!path.empty()) validate_output_path(path);
    }
  });
  const auto report = evaluate_files(options, world);
  run_in_agreement(world, [&] {
    if (report) publish(*report, options);
  });
  return 0;
}

}  // namespace ssd
