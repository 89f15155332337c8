#include "model/backbone.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace ssd {
namespace {

namespace nn = torch::nn;

struct BackboneShape {
  const char* name;
  bool is_bottleneck;
  std::array<int, 3> blocks;  // in layer1, layer2, layer3: He et al. 2016, table 1
};

const BackboneShape& shape_of(Backbone backbone) {
  static constexpr std::array<BackboneShape, 5> kShapes{{{"resnet18", false, {2, 2, 2}},
                                                         {"resnet34", false, {3, 4, 6}},
                                                         {"resnet50", true, {3, 4, 6}},
                                                         {"resnet101", true, {3, 4, 23}},
                                                         {"resnet152", true, {3, 8, 36}}}};
  return kShapes.at(static_cast<std::size_t>(backbone));
}

nn::Conv2d convolution(int in, int out, int kernel, int stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

// Both kinds of residual block: two 3x3 convolutions, or 1x1 - 3x3 - 1x1 with four times the channels at the
// end.
class ResidualBlock : public nn::Module {
 public:
  ResidualBlock(int in, int width, int stride, bool is_bottleneck) {
    const int out = is_bottleneck ? 4 * width : width;
    conv1_ = register_module(
        "conv1", is_bottleneck ? convolution(in, width, 1, 1) : convolution(in, width, 3, stride));
    bn1_ = register_module("bn1", nn::BatchNorm2d(width));
    conv2_ = register_module("conv2", convolution(width, width, 3, is_bottleneck ? stride : 1));
    bn2_ = register_module("bn2", nn::BatchNorm2d(width));
    if (is_bottleneck) {
      conv3_ = register_module("conv3", convolution(width, out, 1, 1));
      bn3_ = register_module("bn3", nn::BatchNorm2d(out));
    }
    if (stride != 1 || in != out) {
      downsample_ = register_module("downsample",
                                    nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm2d(out)));
    }
  }

  torch::Tensor forward(const torch::Tensor& input) {
    auto x = bn1_(conv1_(input)).relu_();
    x = bn2_(conv2_(x));
    if (!conv3_.is_empty()) x = bn3_(conv3_(x.relu_()));
    x += downsample_.is_empty() ? input : downsample_->forward(input);
    return x.relu_();
  }

 private:
  nn::Conv2d conv1_{nullptr}, conv2_{nullptr}, conv3_{nullptr};
  nn::BatchNorm2d bn1_{nullptr}, bn2_{nullptr}, bn3_{nullptr};
  nn::Sequential downsample_{nullptr};
};

// A Sequential that can be a child of a Sequential: its forward is no template.
class LayerImpl : public nn::SequentialImpl {
 public:
  torch::Tensor forward(torch::Tensor input) { return nn::SequentialImpl::forward(std::move(input)); }
};
TORCH_MODULE(Layer);

Layer make_layer(int in, int width, int stride, int blocks, bool is_bottleneck) {
  Layer layer;
  for (int i = 0; i < blocks; ++i) {
    layer->push_back(std::make_shared<ResidualBlock>(i == 0 ? in : (is_bottleneck ? 4 * width : width), width,
                                                     i == 0 ? stride : 1, is_bottleneck));
  }
  return layer;
}

}  // namespace

const char* backbone_name(Backbone backbone) {
  return shape_of(backbone).name;
}

Backbone backbone_from_name(std::string_view name) {
  std::string names;
  for (const auto backbone : kBackbones) {
    if (name == backbone_name(backbone)) return backbone;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", backbone_name(backbone));
  }
  throw UsageError(fmt::format("--backbone '{}': not one of {}", name, names));
}

std::array<int, kMapCount> feature_map_channels(Backbone backbone) {
  switch (backbone) {
    case Backbone::resnet18:
      return {256, 512, 512, 256, 256, 128};
    case Backbone::resnet34:
      return {256, 512, 512, 256, 256, 256};
    default:
      return {1024, 512, 512, 256, 256, 256};
  }
}

nn::Sequential make_feature_extractor(Backbone backbone) {
  const auto& shape = shape_of(backbone);
  const int expansion = shape.is_bottleneck ? 4 : 1;
  return nn::Sequential(
      convolution(3, 64, 7, 2), nn::BatchNorm2d(64), nn::ReLU(nn::ReLUOptions(true)),
      nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)),
      make_layer(64, 64, 1, shape.blocks[0], shape.is_bottleneck),
      make_layer(64 * expansion, 128, 2, shape.blocks[1], shape.is_bottleneck),
      make_layer(128 * expansion, 256, 1, shape.blocks[2], shape.is_bottleneck));  // stride 1 instead of 2
}

}  // namespace ssd
