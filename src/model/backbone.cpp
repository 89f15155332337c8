#include "model/backbone.hpp"

#include <fmt/format.h>

#include <optional>

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

}  // namespace

// Both kinds of residual block: two 3x3 convolutions, or 1x1 - 3x3 - 1x1 with four times the channels at the
// end.
class ResidualBlock : public nn::Module {
 public:
  ResidualBlock(int in, int width, int stride, bool is_bottleneck) {
    const int out = is_bottleneck ? 4 * width : width;
    add_unit(is_bottleneck ? convolution(in, width, 1, 1) : convolution(in, width, 3, stride));
    add_unit(convolution(width, width, 3, is_bottleneck ? stride : 1));
    if (is_bottleneck) add_unit(convolution(width, out, 1, 1));
    if (stride != 1 || in != out) {
      nn::ModuleList downsample;
      shortcut_ = append_unit(downsample, convolution(in, out, 1, stride), /*with_relu=*/false);
      register_module("downsample", downsample);
    }
  }

  torch::Tensor forward(const torch::Tensor& input) {
    auto x = input;
    for (std::size_t i = 0; i + 1 < units_.size(); ++i) x = units_[i].forward(x);
    return units_.back().forward(x, shortcut_ ? shortcut_->forward(input) : input);
  }

  void for_each_unit(const UnitFunction& function) {
    for (auto& unit : units_) function(unit);
    if (shortcut_) function(*shortcut_);
  }

 private:
  void add_unit(nn::Conv2d convolution) {
    const auto number = units_.size() + 1;
    nn::BatchNorm2d norm(convolution->options.out_channels());
    register_module(fmt::format("conv{}", number), convolution);
    register_module(fmt::format("bn{}", number), norm);
    units_.emplace_back(std::move(convolution), std::move(norm), /*with_relu=*/true);
  }

  std::vector<ConvolutionUnit> units_;  // the last one adds the shortcut
  std::optional<ConvolutionUnit> shortcut_;
};

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

FeatureExtractor::FeatureExtractor(Backbone backbone) {
  const auto& shape = shape_of(backbone);
  nn::ModuleList children;
  stem_ = append_unit(children, convolution(3, 64, 7, 2), /*with_relu=*/true);
  children->push_back(nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)));
  constexpr std::array kWidths{64, 128, 256};
  constexpr std::array kStrides{1, 2, 1};  // layer3: 1 where ResNet has 2
  int in = 64;
  for (std::size_t layer = 0; layer < kWidths.size(); ++layer) {
    nn::ModuleList blocks;
    for (int i = 0; i < shape.blocks[layer]; ++i) {
      blocks_.push_back(std::make_shared<ResidualBlock>(in, kWidths[layer], i == 0 ? kStrides[layer] : 1,
                                                        shape.is_bottleneck));
      blocks->push_back(blocks_.back());
      in = shape.is_bottleneck ? 4 * kWidths[layer] : kWidths[layer];
    }
    children->push_back(blocks);
  }
  register_module("feature_extractor", children);
}

torch::Tensor FeatureExtractor::forward(const torch::Tensor& images) {
  auto x = torch::max_pool2d(stem_.forward(images), 3, 2, 1);
  for (const auto& block : blocks_) x = block->forward(x);
  return x;
}

void FeatureExtractor::for_each_unit(const UnitFunction& function) {
  function(stem_);
  for (const auto& block : blocks_) block->for_each_unit(function);
}

}  // namespace ssd
