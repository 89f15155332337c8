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

std::optional<std::vector<std::string>> class_names_of(const CheckpointItem& root) {
  const int count = count_classes(root);
  const auto labels = root.find("label_map");
  if (!labels || labels->value().get_if<Dict>() == nullptr) return std::nullopt;
  std::vector<std::string> names;
  for (std::int64_t label = 1; label <= count; ++label) {
    const auto item = labels->find(label);
    names.push_back(item ? item->text() : fmt::format("class {}", label));
  }
  return names;
}

}  // namespace ssd
