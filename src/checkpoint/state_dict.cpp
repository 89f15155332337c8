#include "checkpoint/state_dict.hpp"

#include <algorithm>

namespace ssd {
namespace {

constexpr std::string_view kModulePrefix = "module.";

void strip_module_prefix(std::vector<NamedTensor>& tensors) {
  const auto carries_prefix = [](const NamedTensor& entry) { return entry.name.starts_with(kModulePrefix); };
  if (!std::ranges::all_of(tensors, carries_prefix)) return;
  for (auto& entry : tensors) entry.name.erase(0, kModulePrefix.size());
}

}  // namespace

std::vector<NamedTensor> state_dict_of(const CheckpointItem& root) {
  const auto model = root.find("model").value_or(root);
  std::vector<NamedTensor> tensors;
  for (const auto& [key, value] : model.dict().entries()) {
    const auto* name = key.get_if<std::string>();
    if (name == nullptr)
      throw model.error("has the key " + key_text(key) + ", a number; names of tensors are expected");
    tensors.push_back({*name, model.at(*name).tensor()});
  }
  if (tensors.empty()) throw model.error("holds no tensors; a state_dict is expected");
  strip_module_prefix(tensors);
  return tensors;
}

}  // namespace ssd
