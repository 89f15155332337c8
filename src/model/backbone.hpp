// The ResNet feature extractor of SSD300: torchvision's ResNet up to and including layer3, whose first block
// keeps stride 1, so that a 300x300 input gives a 38x38 map. He et al. 2016; Liu et al. 2016, section 2.1;
// the bottleneck's stride stands on its 3x3 convolution ("ResNet v1.5"), as torchvision has it.
#pragma once

#include <torch/torch.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "boxes/constants.hpp"
#include "model/convolution_unit.hpp"

namespace ssd {

enum class Backbone { resnet18, resnet34, resnet50, resnet101, resnet152 };

inline constexpr std::array kBackbones{Backbone::resnet18, Backbone::resnet34, Backbone::resnet50,
                                       Backbone::resnet101, Backbone::resnet152};

const char* backbone_name(Backbone backbone);
Backbone backbone_from_name(std::string_view name);  // throws UsageError that lists the names

// Channels of the six feature maps: the backbone's output and the five additional blocks'.
std::array<int, kMapCount> feature_map_channels(Backbone backbone);

class ResidualBlock;

// Its children are named as the reference's: feature_extractor.0 conv1, 1 bn1, 2 relu, 3 maxpool, 4 layer1, 5
// layer2, 6 layer3.
class FeatureExtractor : public torch::nn::Module {
 public:
  explicit FeatureExtractor(Backbone backbone);

  torch::Tensor forward(const torch::Tensor& images);  // (N, 3, 300, 300) to (N, C, 38, 38)
  void for_each_unit(const UnitFunction& function);

 private:
  ConvolutionUnit stem_;
  std::vector<std::shared_ptr<ResidualBlock>> blocks_;
};

}  // namespace ssd
