// SGD with momentum over an arena block, one pass: unscale, weight decay, momentum, update, write back in the
// compute dtype. torch.optim.SGD without dampening and Nesterov: g += decay * w; m = momentum * m + g; w -=
// rate * m.
#pragma once

#include <torch/torch.h>

#include "train/parameter_arena.hpp"

namespace ssd {

struct SgdOptions {
  double momentum = 0.9;
  double weight_decay = 5e-4;  // for entries with weight decay
};

struct SgdStep {
  double learning_rate = 0;
  torch::Tensor inverse_scale;   // (1) float32 on the block's device: gradients are multiplied by it
  torch::Tensor found_overflow;  // (1) float32: other than 0 leaves weights and momentum as they are
};

// 1 in found_overflow if any gradient is infinite or NaN; else left as it is. No host-device synchronisation.
void detect_overflow(const torch::Tensor& gradients, torch::Tensor& found_overflow);

// gradients: (n), averaged over ranks; need not be the block's own. float64 with float64 masters, any other
// floating dtype with float32 masters. On a CPU a fused loop, on other devices ATen operations; the results
// differ by rounding only.
void sgd_update(ArenaBlock& block, const torch::Tensor& gradients, const SgdOptions& options,
                const SgdStep& step);

// The form for any device, for the tests that compare the two.
void sgd_update_by_operations(ArenaBlock& block, const torch::Tensor& gradients, const SgdOptions& options,
                              const SgdStep& step);

}  // namespace ssd
