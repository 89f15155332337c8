// Which ResNet tensors are of, by their names. No torch.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/state_dict.hpp"

namespace ssd {

// "resnet18", "resnet34", "resnet50", "resnet101" or "resnet152", by the kind and number of the blocks whose
// names begin with `layer3`: they tell all of them apart. Nothing where it is none of these.
std::optional<std::string> backbone_name_of(std::span<const NamedTensor> tensors, std::string_view layer3);

inline constexpr std::string_view kSsdLayer3 = "feature_extractor.feature_extractor.6.";  // of an SSD300
inline constexpr std::string_view kTorchvisionLayer3 = "layer3.";

}  // namespace ssd
