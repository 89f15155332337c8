// A convolution with the BatchNorm, the residual addition and the ReLU that follow it: what SSD300 is made of
// but for its heads. No module itself: the modules keep their places, and with them the reference's names.
#pragma once

#include <torch/torch.h>

#include <functional>

namespace ssd {

class ConvolutionUnit {
 public:
  ConvolutionUnit() = default;
  ConvolutionUnit(torch::nn::Conv2d convolution, torch::nn::BatchNorm2d norm, bool with_relu)
      : convolution_(std::move(convolution)), norm_(std::move(norm)), with_relu_(with_relu) {}

  // relu(norm(convolution(input)) + residual); residual may be undefined.
  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& residual = {}) const;

  // For inference: forward takes the BatchNorm's running statistics as part of the convolution's weights,
  // until unfold(). Later changes of weights and statistics are not seen. Jacob et al. 2018, section 3.2.
  void fold();
  void unfold();

 private:
  torch::Tensor folded_forward(const torch::Tensor& input, const torch::Tensor& residual) const;
  at::IntArrayRef stride() const;
  at::IntArrayRef padding() const;

  torch::nn::Conv2d convolution_{nullptr};
  torch::nn::BatchNorm2d norm_{nullptr};
  bool with_relu_ = true;
  torch::Tensor folded_weight_,
      folded_bias_;  // undefined unless folded; the weight perhaps in oneDNN's own order
};

using UnitFunction = std::function<void(ConvolutionUnit&)>;

// Puts convolution, a BatchNorm and, with_relu, a ReLU at the end of a list of modules.
ConvolutionUnit append_unit(torch::nn::ModuleList& modules, torch::nn::Conv2d convolution, bool with_relu);

}  // namespace ssd
