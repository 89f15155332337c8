#include "model/model_tensors.hpp"

namespace ssd {
namespace {

void collect(const torch::nn::Module& module, const std::string& prefix, std::vector<ModelTensor>& out) {
  const bool is_norm = module.as<torch::nn::BatchNorm2dImpl>() != nullptr;
  for (const auto& item : module.named_parameters(false))
    out.push_back({prefix + item.key(), item.value(), true, is_norm});
  for (const auto& item : module.named_buffers(false))
    out.push_back({prefix + item.key(), item.value(), false, is_norm});
  for (const auto& item : module.named_children()) collect(*item.value(), prefix + item.key() + ".", out);
}

}  // namespace

std::vector<ModelTensor> model_tensors(const torch::nn::Module& module) {
  std::vector<ModelTensor> tensors;
  collect(module, "", tensors);
  return tensors;
}

}  // namespace ssd
