#include "checkpoint/class_count.hpp"

#include "boxes/constants.hpp"
#include "checkpoint/state_dict.hpp"
#include "core/error.hpp"

namespace ssd {

int count_classes(const CheckpointItem& root) {
  for (const auto& [name, tensor] : state_dict_of(root)) {
    if (name != "conf.0.bias" || tensor.shape.size() != 1) continue;
    const auto count = tensor.shape[0] / kBoxesPerCell[0] - 1;
    SSD_VALIDATE(tensor.shape[0] % kBoxesPerCell[0] == 0 && count >= 1 && count < 100000,
                 "checkpoint '{}': 'conf.0.bias' has {} elements, which is no number of classes",
                 root.source(), tensor.shape[0]);
    return static_cast<int>(count);
  }
  throw Error(
      fmt::format("checkpoint '{}': no tensor 'conf.0.bias' in it; is it one of an SSD300?", root.source()));
}

}  // namespace ssd
