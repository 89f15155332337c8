// A training step as a CUDA graph: its few thousand kernels are launched at once, which is what limits small
// batches. The first steps run as they are, then one is captured, and from there on replayed. Only in builds
// with CUDA, and for a world of one. The current stream must be the same, and not the default one, from
// before the network was made.
#pragma once

#include <ATen/cuda/CUDAGraph.h>

#include "train/train_step.hpp"

namespace ssd {

class StepGraph {
 public:
  explicit StepGraph(TrainStep& step) : step_(step) {}  // must outlive the graph

  // As TrainStep::run. Every call takes the same shapes.
  torch::Tensor run(const torch::Tensor& images, const LossTargets& targets, double learning_rate);

 private:
  TrainStep& step_;
  at::cuda::CUDAGraph graph_;
  int steps_ = 0;
  torch::Tensor images_, loss_;  // the graph's own memory
  LossTargets targets_;
};

}  // namespace ssd
