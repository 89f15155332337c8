#include "model/convolution_unit.hpp"

#include <ATen/core/dispatch/Dispatcher.h>

#include <array>

#include "model/batch_norm_relu.hpp"

namespace ssd {
namespace {

using torch::Tensor;

constexpr std::array<std::int64_t, 2> kNoDilation{1, 1};

// oneDNN's convolution with addition and ReLU in one pass over the output, as LibTorch registers it (its
// operators "mkldnn::...", which torch.compile uses too). float32 and bfloat16 on a CPU.
using Scalars = torch::List<std::optional<at::Scalar>>;
Tensor convolve(const Tensor& input, const Tensor& weight, const Tensor& bias, at::IntArrayRef padding,
                at::IntArrayRef stride, bool with_relu) {
  static const auto operation =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("mkldnn::_convolution_pointwise", "")
          .typed<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, at::IntArrayRef,
                        at::IntArrayRef, at::IntArrayRef, std::int64_t, std::string_view, Scalars,
                        std::optional<std::string_view>)>();
  return operation.call(input, weight, bias, padding, stride, kNoDilation, 1, with_relu ? "relu" : "none",
                        Scalars(), std::nullopt);
}
Tensor convolve_and_add(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        at::IntArrayRef padding, at::IntArrayRef stride, const Tensor& residual,
                        bool with_relu) {
  static const auto operation =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("mkldnn::_convolution_pointwise", "binary")
          .typed<Tensor(const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&,
                        at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, std::int64_t, std::string_view,
                        std::optional<at::Scalar>, std::optional<std::string_view>, Scalars,
                        std::optional<std::string_view>)>();
  const auto relu = with_relu ? std::optional<std::string_view>("relu") : std::nullopt;
  return operation.call(input, residual, weight, bias, padding, stride, kNoDilation, 1, "add", 1.0, relu,
                        Scalars(), std::nullopt);
}
// The weight in the order that oneDNN computes in, made once.
Tensor reorder_weight(const Tensor& weight, at::IntArrayRef padding, at::IntArrayRef stride) {
  static const auto operation = c10::Dispatcher::singleton()
                                    .findSchemaOrThrow("mkldnn::_reorder_convolution_weight", "")
                                    .typed<Tensor(const Tensor&, at::IntArrayRef, at::IntArrayRef,
                                                  at::IntArrayRef, std::int64_t, at::OptionalIntArrayRef)>();
  return operation.call(weight, padding, stride, kNoDilation, 1, std::nullopt);
}

bool is_for_onednn(const Tensor& weight) {
  const auto type = weight.scalar_type();
  return weight.is_cpu() && (type == torch::kFloat || type == torch::kBFloat16);
}

}  // namespace

Tensor ConvolutionUnit::forward(const Tensor& input, const Tensor& residual) const {
  if (folded_weight_.defined()) return folded_forward(input, residual);
  auto& convolution = const_cast<torch::nn::Conv2d&>(convolution_);
  return batch_norm_relu(*norm_.ptr(), convolution->forward(input), residual, with_relu_);
}

void ConvolutionUnit::fold() {
  torch::NoGradGuard no_grad;
  // In double: rounded once.
  const auto scale = norm_->weight.to(torch::kDouble) /
                     (norm_->running_var.to(torch::kDouble) + norm_->options.eps()).sqrt();
  const auto offset = norm_->bias.to(torch::kDouble) - norm_->running_mean.to(torch::kDouble) * scale;
  const auto& weight = convolution_->weight;
  folded_weight_ = (weight.to(torch::kDouble) * scale.view({-1, 1, 1, 1})).to(weight.scalar_type());
  if (is_for_onednn(weight)) folded_weight_ = reorder_weight(folded_weight_, padding(), stride());
  folded_bias_ = offset.to(weight.scalar_type());
}

void ConvolutionUnit::unfold() {
  folded_weight_.reset();
  folded_bias_.reset();
}

Tensor ConvolutionUnit::folded_forward(const Tensor& input, const Tensor& residual) const {
  if (is_for_onednn(convolution_->weight)) {
    if (residual.defined()) {
      return convolve_and_add(input, folded_weight_, folded_bias_, padding(), stride(), residual, with_relu_);
    }
    return convolve(input, folded_weight_, folded_bias_, padding(), stride(), with_relu_);
  }
  auto output = torch::conv2d(input, folded_weight_, folded_bias_, stride(), padding());
  if (residual.defined()) output += residual;
  return with_relu_ ? output.relu_() : output;
}

at::IntArrayRef ConvolutionUnit::stride() const {
  return *convolution_->options.stride();
}
at::IntArrayRef ConvolutionUnit::padding() const {
  return *std::get<torch::ExpandingArray<2>>(convolution_->options.padding());
}

ConvolutionUnit append_unit(torch::nn::ModuleList& modules, torch::nn::Conv2d convolution, bool with_relu) {
  torch::nn::BatchNorm2d norm(convolution->options.out_channels());
  modules->push_back(convolution);
  modules->push_back(norm);
  if (with_relu) modules->push_back(torch::nn::ReLU());  // keeps the place; the unit computes it
  return {std::move(convolution), std::move(norm), with_relu};
}

}  // namespace ssd
