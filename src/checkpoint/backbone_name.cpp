#include "checkpoint/backbone_name.hpp"

#include <array>
#include <set>

namespace ssd {
namespace {

struct Layer3 {
  const char* name;
  bool is_bottleneck;
  std::size_t blocks;
};

// He et al. 2016, table 1.
constexpr std::array<Layer3, 5> kBackbones{{{"resnet18", false, 2},
                                            {"resnet34", false, 6},
                                            {"resnet50", true, 6},
                                            {"resnet101", true, 23},
                                            {"resnet152", true, 36}}};

}  // namespace

std::optional<std::string> backbone_name_of(std::span<const NamedTensor> tensors, std::string_view layer3) {
  std::set<std::string_view> blocks;
  bool is_bottleneck = false;
  for (const auto& entry : tensors) {
    std::string_view name = entry.name;
    if (!name.starts_with(layer3)) continue;
    name.remove_prefix(layer3.size());
    const auto block = name.substr(0, name.find('.'));
    blocks.insert(block);
    is_bottleneck |= name.substr(block.size()).starts_with(".conv3.");
  }
  for (const auto& backbone : kBackbones) {
    if (backbone.is_bottleneck == is_bottleneck && backbone.blocks == blocks.size()) return backbone.name;
  }
  return std::nullopt;
}

}  // namespace ssd
