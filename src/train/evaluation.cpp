#include "train/evaluation.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/phase.hpp"
#include "core/stopwatch.hpp"
#include "report/progress.hpp"
#include "train/decoded_detections.hpp"
#include "train/input_transform.hpp"

namespace ssd {
namespace {

// The annotations of a set, in the order of its JSON.
std::vector<Annotation> annotations_in_json_order(const ShardSet& set) {
  std::vector<std::pair<std::uint64_t, Annotation>> ordered;
  for (const auto& record : set.records()) {
    for (const auto& box : set.annotations_of(record)) {
      ordered.emplace_back(box.json_order, Annotation{box.id, record.image_id, box.category_id, box.bbox_xywh,
                                                      box.area, box.is_crowd});
    }
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Annotation> annotations;
  for (auto& [order, annotation] : ordered) annotations.push_back(annotation);
  return annotations;
}

std::vector<CategoryId> ascending_category_ids(const ShardSet& set) {
  std::vector<CategoryId> ids;
  for (const auto& category : set.categories()) ids.push_back(category.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Puts a model into evaluation mode, its BatchNorms folded, and back into what it was in.
class EvaluationModeGuard {
 public:
  explicit EvaluationModeGuard(Ssd300& model) : model_(model), was_training_(model.is_training()) {
    model_.eval();
    model_.fold();
  }
  ~EvaluationModeGuard() {
    model_.unfold();
    model_.train(was_training_);
  }
  EvaluationModeGuard(const EvaluationModeGuard&) = delete;
  EvaluationModeGuard& operator=(const EvaluationModeGuard&) = delete;

 private:
  Ssd300& model_;
  bool was_training_;
};

std::span<const std::byte> as_byte_span(const std::vector<Detection>& detections) {
  return std::as_bytes(std::span(detections));
}

}  // namespace

Evaluator::Evaluator(const ShardSet& set, std::vector<CategoryId> label_category_ids, int batch_size,
                     EvaluationRecords records)
    : set_(set),
      label_category_ids_(std::move(label_category_ids)),
      batch_size_(batch_size),
      records_(records),
      ground_truth_(resolve_ground_truth(annotations_in_json_order(set))),
      category_ids_(ascending_category_ids(set)) {
  for (const auto& warning : ground_truth_.warnings) log_info("warning: {}", warning);
}

std::vector<Detection> Evaluator::detect_own_images(Ssd300& model, const ComputePlan& plan,
                                                    const MpiComm& world,
                                                    std::vector<ImageId>& own_images) const {
  torch::NoGradGuard no_grad;
  const EvaluationModeGuard evaluation_mode(model);
  EvaluationLoaderOptions options;
  options.share = {batch_size_, world.rank(), world.world_size()};
  options.records = records_;
  options.pipeline.threads = plan.loader_threads;
  EvaluationLoader loader(set_, options);
  const auto default_boxes = default_boxes_tensor().to(plan.device);
  const InputTransform transform(plan);
  Progress progress("evaluating", "batches", loader.batch_count());
  std::vector<Detection> detections;
  while (const auto batch = loader.next()) {
    const auto& rows = **batch;
    const auto predictions = model.forward(transform(rows.images, rows.size));
    const auto decoded = decode_detections(predictions.locations, predictions.confidences, default_boxes);
    for (std::size_t n = 0; n < decoded.size(); ++n) {
      if (rows.states[n] == SampleState::padding) continue;
      own_images.push_back(rows.image_ids[n]);
      if (rows.states[n] == SampleState::bad) continue;
      append_detections(decoded[n], rows.image_ids[n], rows.image_sizes[n][0], rows.image_sizes[n][1],
                        label_category_ids_, detections);
    }
    progress.advance();
    note_progress();
  }
  progress.finish();
  return detections;
}

std::optional<GatheredDetections> Evaluator::detect(Ssd300& model, const ComputePlan& plan,
                                                    const MpiComm& world) const {
  const PhaseMark mark("evaluating");
  const Stopwatch time;
  std::vector<ImageId> own_images;
  const auto detections = detect_own_images(model, plan, world, own_images);
  const std::unordered_set<ImageId> is_own(own_images.begin(), own_images.end());
  std::vector<Annotation> own_boxes;
  std::copy_if(ground_truth_.boxes.begin(), ground_truth_.boxes.end(), std::back_inserter(own_boxes),
               [&](const Annotation& box) { return is_own.contains(box.image_id); });
  const auto outcomes = match_images(parameters_, {category_ids_, own_images, own_boxes, detections});

  GatheredDetections gathered;
  gathered.outcomes = world.gather(to_bytes(outcomes));
  gathered.detections = world.gather(as_byte_span(detections));
  gathered.image_count = static_cast<std::size_t>(
      world.reduce_all(static_cast<std::int64_t>(own_images.size()), ReduceOperation::sum));
  if (!world.is_root()) return std::nullopt;
  gathered.seconds = time.seconds();
  return gathered;
}

EvaluationReport Evaluator::score(const GatheredDetections& gathered) const {
  const Stopwatch time;
  std::vector<MatchOutcomes> parts;
  for (const auto& bytes : gathered.outcomes) parts.push_back(match_outcomes_from_bytes(bytes));
  const auto result = accumulate(parameters_, category_ids_, parts);
  EvaluationReport report;
  report.summary = summarize(result);
  report.categories = summarize_categories(result, set_.categories());
  report.image_count = gathered.image_count;
  for (const auto& bytes : gathered.detections) {
    const auto first = report.detections.size();
    report.detections.resize(first + bytes.size() / sizeof(Detection));
    if (!bytes.empty()) std::memcpy(report.detections.data() + first, bytes.data(), bytes.size());
  }
  // In the order of the set, whatever the number of ranks.
  std::unordered_map<ImageId, std::size_t> place;
  for (std::size_t i = 0; i < set_.records().size(); ++i) place[set_.records()[i].image_id] = i;
  std::stable_sort(
      report.detections.begin(), report.detections.end(),
      [&](const Detection& a, const Detection& b) { return place.at(a.image_id) < place.at(b.image_id); });
  report.detection_seconds = gathered.seconds;
  report.scoring_seconds = time.seconds();
  return report;
}

std::string format_report(const EvaluationReport& report) {
  return format_summary(EvaluationParameters{}, report.summary) +
         fmt::format("Current AP: {:.5f}\n", report.summary[0]);
}

}  // namespace ssd
