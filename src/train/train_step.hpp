// One step of training: forward, loss, backward with the allreduce running under it, update. Collective:
// every rank takes the same steps. No host-device synchronisation, unless a clock is given.
#pragma once

#include <torch/torch.h>

#include "model/multibox_loss.hpp"
#include "model/ssd300.hpp"
#include "train/gradient_reducer.hpp"
#include "train/loss_scaler.hpp"
#include "train/parameter_arena.hpp"
#include "train/phase_clock.hpp"
#include "train/sgd.hpp"

namespace ssd {

class TrainStep {
 public:
  // All must outlive the step.
  TrainStep(Ssd300& model, ParameterArena& arena, GradientReducer& reducer, LossScaler& scaler,
            const SgdOptions& options)
      : model_(model), arena_(arena), reducer_(reducer), scaler_(scaler), options_(options) {}

  // images: (N, 3, 300, 300), normalised, in the arena's compute dtype. Returns this rank's loss, a float32
  // (or float64) scalar on the device, before the update. The clock, if there is one, is marked at the end of
  // each phase.
  torch::Tensor run(const torch::Tensor& images, const LossTargets& targets, double learning_rate,
                    PhaseClock* clock = nullptr);

 private:
  Ssd300& model_;
  ParameterArena& arena_;
  GradientReducer& reducer_;
  LossScaler& scaler_;
  SgdOptions options_;
};

}  // namespace ssd
