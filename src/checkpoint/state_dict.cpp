#include "checkpoint/state_dict.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace ssd {
namespace {

// Keys under which programs save a state_dict, and what they leave in front of its names.
constexpr std::array<const char*, 7> kWrapperKeys{
    "model", "state_dict", "model_state_dict", "module", "backbone", "network", "net"};
constexpr std::array<std::string_view, 3> kWrapperPrefixes{"module.", "model.", "backbone."};
constexpr std::string_view kCompiledMark = "_orig_mod.";
constexpr int kMostWrappers = 4;  // within each other

std::optional<std::string> wrapper_key(const Dict& dict) {
  for (const char* key : kWrapperKeys) {
    const auto* value = dict.find(key);
    if (value != nullptr && value->get_if<Dict>() != nullptr) return key;
  }
  return std::nullopt;
}

CheckpointItem find_state_dict(const CheckpointItem& root) {
  auto item = root;
  for (int depth = 0; depth < kMostWrappers; ++depth) {
    const auto key = wrapper_key(item.dict());
    if (!key) break;
    item = item.at(*key);
  }
  return item;
}

void strip_wrappers(std::vector<NamedTensor>& tensors) {
  for (auto& [name, tensor] : tensors) {
    for (auto at = name.find(kCompiledMark); at != name.npos; at = name.find(kCompiledMark, at))
      name.erase(at, kCompiledMark.size());
  }
  for (bool is_stripped = true; is_stripped;) {
    is_stripped = false;
    for (const auto prefix : kWrapperPrefixes) {
      const auto carries = [&](const NamedTensor& entry) { return entry.name.starts_with(prefix); };
      if (!std::ranges::all_of(tensors, carries)) continue;
      for (auto& entry : tensors) entry.name.erase(0, prefix.size());
      is_stripped = true;
    }
  }
}

}  // namespace

std::vector<NamedTensor> state_dict_of(const CheckpointItem& root) {
  const auto model = find_state_dict(root);
  std::vector<NamedTensor> tensors;
  for (const auto& [key, value] : model.dict().entries()) {
    const auto* name = key.get_if<std::string>();
    if (name == nullptr)
      throw model.error("has the key " + key_text(key) + ", a number; names of tensors are expected");
    const auto item = model.at(*name);
    if (value.get_if<TensorValue>() == nullptr) {
      throw item.error(
          fmt::format("is of kind {}, tensor expected; a state_dict is looked for at the top and "
                      "under the keys {}",
                      value.kind_name(), fmt::join(kWrapperKeys, ", ")));
    }
    tensors.push_back({*name, item.tensor()});
  }
  if (tensors.empty()) throw model.error("holds no tensors; a state_dict is expected");
  strip_wrappers(tensors);
  return tensors;
}

std::optional<std::string> state_dict_key(const CheckpointItem& root) {
  return wrapper_key(root.dict());
}

}  // namespace ssd
