// BatchNorm with the residual addition and the ReLU that follow it, as one operation where that pays: in
// training on a CPU with channels-last maps (batch_norm_kernels.hpp); by ATen's operations elsewhere. The two
// agree to rounding.
#pragma once

#include <torch/torch.h>

namespace ssd {

// relu(norm(input) + residual), without the addition where residual is undefined, without the ReLU if
// with_relu is false. In training mode updates the running statistics and throws where a channel has one
// value only, as torch::nn::BatchNorm2d does. May overwrite nothing the caller holds.
torch::Tensor batch_norm_relu(torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& input,
                              const torch::Tensor& residual, bool with_relu);

}  // namespace ssd
