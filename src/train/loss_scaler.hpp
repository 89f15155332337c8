// Dynamic loss scaling (Micikevicius et al. 2018, "Mixed Precision Training", section 3.2): start 65536,
// doubled after 2000 good steps, halved on an overflow, whose step is skipped. The state lives in tensors on
// the device, so that no step waits for it; every rank sees the same averaged gradients and so decides the
// same.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace ssd {

struct LossScalerState {
  double scale = 65536;
  std::int64_t good_steps = 0;     // since the last change of the scale
  std::int64_t skipped_steps = 0;  // in all
};

enum class LossScaling {
  none,
  checked,  // not scaled, but a step whose gradients are not finite is skipped
  dynamic,
};

class LossScaler {
 public:
  static constexpr double kGrowthFactor = 2;
  static constexpr double kBackoffFactor = 0.5;
  static constexpr std::int64_t kGrowthInterval = 2000;

  LossScaler(LossScaling scaling, torch::Device device);

  bool is_dynamic() const { return scaling_ == LossScaling::dynamic; }
  bool skips_overflows() const { return scaling_ != LossScaling::none; }
  torch::Tensor scale(const torch::Tensor& loss) const;
  torch::Tensor inverse_scale() const;                         // (1) float32
  torch::Tensor& found_overflow() { return found_overflow_; }  // (1) float32, set to 1 by who finds one
  void update();  // after the step: counts what was skipped, adapts the scale and clears found_overflow

  LossScalerState state() const;  // waits for the device
  void set_state(const LossScalerState& state);

 private:
  LossScaling scaling_;
  torch::Tensor scale_;           // (1) float32
  torch::Tensor good_steps_;      // (1) int32
  torch::Tensor skipped_steps_;   // (1) int64
  torch::Tensor found_overflow_;  // (1) float32
};

}  // namespace ssd
