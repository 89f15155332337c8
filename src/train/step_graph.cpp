#include "train/step_graph.hpp"

namespace ssd {
namespace {

// Steps before the capture: cuDNN chooses its kernels in them, and buffers are made.
constexpr int kStepsBefore = 3;

}  // namespace

torch::Tensor StepGraph::run(const torch::Tensor& images, const LossTargets& targets, double learning_rate) {
  ++steps_;
  if (steps_ <= kStepsBefore) return step_.run(images, targets, learning_rate);
  torch::NoGradGuard no_grad;
  if (steps_ == kStepsBefore + 1) {
    images_ = images.clone();
    targets_ = {targets.labels.clone(), targets.offsets.clone()};
  } else {
    images_.copy_(images);
    targets_.labels.copy_(targets.labels);
    targets_.offsets.copy_(targets.offsets);
  }
  step_.set_learning_rate(learning_rate);
  if (steps_ == kStepsBefore + 1) {
    // Other threads of this process (loader, autograd) go on calling CUDA meanwhile.
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    {
      torch::AutoGradMode with_grad(true);
      loss_ = step_.run_with_rate_set(images_, targets_);
    }
    graph_.capture_end();  // nothing of the captured step has run yet
  }
  graph_.replay();
  return loss_.clone();
}

}  // namespace ssd
