#include "train/loss_scaler.hpp"

namespace ssd {

LossScaler::LossScaler(LossScaling scaling, torch::Device device) : scaling_(scaling) {
  const auto options = torch::TensorOptions().device(device);
  const LossScalerState start;
  scale_ =
      torch::full({1}, scaling == LossScaling::dynamic ? start.scale : 1.0, options.dtype(torch::kFloat));
  good_steps_ = torch::zeros({1}, options.dtype(torch::kInt));
  skipped_steps_ = torch::zeros({1}, options.dtype(torch::kLong));
  found_overflow_ = torch::zeros({1}, options.dtype(torch::kFloat));
}

torch::Tensor LossScaler::scale(const torch::Tensor& loss) const {
  return is_dynamic() ? loss * scale_.to(loss.scalar_type()).squeeze() : loss;
}

torch::Tensor LossScaler::inverse_scale() const {
  return scale_.reciprocal();
}

void LossScaler::update() {
  if (!skips_overflows()) return;
  torch::NoGradGuard no_grad;
  skipped_steps_ += found_overflow_.to(torch::kLong);
  if (is_dynamic()) {
    at::_amp_update_scale_(scale_, good_steps_, found_overflow_, kGrowthFactor, kBackoffFactor,
                           kGrowthInterval);
  }
  found_overflow_.zero_();
}

LossScalerState LossScaler::state() const {
  return {scale_.item<float>(), good_steps_.item<int>(), skipped_steps_.item<std::int64_t>()};
}

void LossScaler::set_state(const LossScalerState& state) {
  if (!is_dynamic()) return;
  scale_.fill_(state.scale);
  good_steps_.fill_(state.good_steps);
  skipped_steps_.fill_(state.skipped_steps);
}

}  // namespace ssd
