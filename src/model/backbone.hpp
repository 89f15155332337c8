// The ResNet feature extractor of SSD300: torchvision's ResNet up to and including layer3, whose first block
// keeps stride 1, so that a 300x300 input gives a 38x38 map. He et al. 2016; Liu et al. 2016, section 2.1;
// the bottleneck's stride stands on its 3x3 convolution ("ResNet v1.5"), as torchvision has it.
#pragma once

#include <torch/torch.h>

#include <array>
#include <string>
#include <string_view>

#include "boxes/constants.hpp"

namespace ssd {

enum class Backbone { resnet18, resnet34, resnet50, resnet101, resnet152 };

inline constexpr std::array kBackbones{Backbone::resnet18, Backbone::resnet34, Backbone::resnet50,
                                       Backbone::resnet101, Backbone::resnet152};

const char* backbone_name(Backbone backbone);
Backbone backbone_from_name(std::string_view name);  // throws UsageError that lists the names

// Channels of the six feature maps: the backbone's output and the five additional blocks'.
std::array<int, kMapCount> feature_map_channels(Backbone backbone);

// A Sequential whose children are named as the reference's: 0 conv1, 1 bn1, 2 relu, 3 maxpool, 4 layer1, 5
// layer2, 6 layer3. Input (N, 3, 300, 300), output (N, C, 38, 38).
torch::nn::Sequential make_feature_extractor(Backbone backbone);

}  // namespace ssd
