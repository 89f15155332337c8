#include "train/train_step.hpp"

namespace ssd {

torch::Tensor TrainStep::run(const torch::Tensor& images, const LossTargets& targets, double learning_rate,
                             PhaseClock* clock) {
  set_learning_rate(learning_rate);
  return run_with_rate_set(images, targets, clock);
}

void TrainStep::set_learning_rate(double learning_rate) {
  learning_rate_ = learning_rate;
  const auto device = arena_.blocks().front().master.device();
  if (!rate_on_device_.defined())
    rate_on_device_ = torch::zeros({}, torch::TensorOptions(device).dtype(torch::kDouble));
  rate_on_device_.fill_(learning_rate);
}

torch::Tensor TrainStep::run_with_rate_set(const torch::Tensor& images, const LossTargets& targets,
                                           PhaseClock* clock) {
  const auto mark = [&](StepPhase phase) {
    if (clock != nullptr) clock->mark(phase);
  };
  const auto loss_type = arena_.options().compute_type == torch::kDouble ? torch::kDouble : torch::kFloat;
  arena_.zero_gradients();
  reducer_.begin_step();
  const auto predictions = model_.forward(images);
  const auto loss =
      multibox_loss(predictions.locations.to(loss_type), predictions.confidences.to(loss_type), targets);
  mark(StepPhase::forward);
  scaler_.scale(loss).backward();
  mark(StepPhase::backward);
  reducer_.finish_step();
  mark(StepPhase::exposed_communication);

  torch::NoGradGuard no_grad;
  if (scaler_.skips_overflows()) {
    for (std::size_t b = 0; b < arena_.blocks().size(); ++b)
      detect_overflow(reducer_.averaged(b), scaler_.found_overflow());
  }
  const SgdStep step{learning_rate_, rate_on_device_, scaler_.inverse_scale(), scaler_.found_overflow()};
  for (std::size_t b = 0; b < arena_.blocks().size(); ++b)
    sgd_update(arena_.blocks()[b], reducer_.averaged(b), options_, step);
  if (arena_.preserves_state() && scaler_.found_overflow().item<float>() == 0) arena_.adopt_update();
  scaler_.update();
  mark(StepPhase::optimizer);
  return loss.detach();
}

}  // namespace ssd
