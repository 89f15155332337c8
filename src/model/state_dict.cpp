#include "model/state_dict.hpp"

namespace ssd {
namespace {

void collect(const torch::nn::Module& module, const std::string& prefix, std::vector<NamedTensor>& out) {
  for (const auto& item : module.named_parameters(false)) out.push_back({prefix + item.key(), item.value(), true});
  for (const auto& item : module.named_buffers(false)) out.push_back({prefix + item.key(), item.value(), false});
  for (const auto& item : module.named_children()) collect(*item.value(), prefix + item.key() + ".", out);
}

}  // namespace

std::vector<NamedTensor> state_dict_of(const torch::nn::Module& module) {
  std::vector<NamedTensor> tensors;
  collect(module, "", tensors);
  return tensors;
}

}  // namespace ssd
