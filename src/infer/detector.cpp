#include "infer/detector.hpp"

#include <algorithm>

#include "checkpoint/class_count.hpp"
#include "train/training_checkpoint.hpp"

namespace ssd {

Detector::Detector(const CheckpointItem& root, const InferOptions& options, const RankPlacement& placement)
    : score_threshold_(options.score_threshold) {
  nms_.iou_threshold = options.nms_iou;
  nms_.max_output = options.max_detections;
  TrainOptions choices;  // the part of them that says what to compute with
  choices.device = options.device;
  choices.use_half = options.use_half;
  choices.num_workers = 1;  // one thread reads ahead
  const auto cpu = find_cpu_capabilities();
  plan_ = plan_compute(choices, placement, cpu, visible_device_count());
  apply_compute_plan(plan_, choices);
  description_ = fmt::format("{}, {} compute, {} compute threads", plan_.device.is_cuda() ? "CUDA" : "CPU",
                             c10::toString(plan_.arena.compute_type), plan_.compute_threads);
  model_ = std::make_unique<Ssd300>(backbone_for(root, options.backbone), count_classes(root) + 1);
  model_->to(plan_.device);
  model_->eval();
  arena_ = std::make_unique<ParameterArena>(*model_, plan_.arena);
  load_checkpoint(root, *model_, *arena_, Restore::weights);
  model_->fold();
  default_boxes_ = default_boxes_tensor().to(plan_.device);
  transform_.emplace(plan_);
}

std::vector<DecodedImage> Detector::detect(const std::uint8_t* images, int count) {
  torch::NoGradGuard no_grad;
  const auto predictions = model_->forward((*transform_)(images, count));
  auto found = decode_detections(predictions.locations, predictions.confidences, default_boxes_, nms_);
  for (auto& image : found) {  // scores fall
    const auto kept = std::find_if(image.scores.begin(), image.scores.end(),
                                   [&](float score) { return score <= score_threshold_; });
    const auto size = static_cast<std::size_t>(kept - image.scores.begin());
    image.boxes_ltrb.resize(size);
    image.scores.resize(size);
    image.labels.resize(size);
  }
  return found;
}

}  // namespace ssd
