#include "checkpoint_tool/flat_tensors.hpp"

#include <fmt/ranges.h>

namespace ssd {
namespace {

void collect(const Value& value, const std::string& path, std::vector<FlatTensor>& found) {
  const auto below = [&](const std::string& name) { return path.empty() ? name : path + "/" + name; };
  if (const auto* tensor = value.get_if<TensorValue>()) {
    found.push_back({path, *tensor});
  } else if (const auto* dict = value.get_if<Dict>()) {
    for (const auto& [key, item] : dict->entries()) collect(item, below(key_text(key)), found);
  } else {
    const auto* list = value.get_if<List>();
    const auto* tuple = value.get_if<Tuple>();
    if (list == nullptr && tuple == nullptr) return;
    const auto& items = list != nullptr ? list->items : tuple->items;
    for (std::size_t i = 0; i < items.size(); ++i) collect(items[i], below(fmt::format("{}", i)), found);
  }
}

}  // namespace

std::vector<FlatTensor> flat_tensors(const CheckpointItem& root) {
  std::vector<FlatTensor> found;
  collect(root.value(), "", found);
  return found;
}

std::string shape_text(const TensorValue& tensor) {
  return tensor.shape.empty() ? "scalar" : fmt::format("{}", fmt::join(tensor.shape, "x"));
}

}  // namespace ssd
