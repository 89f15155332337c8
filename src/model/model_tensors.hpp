// The network's tensors by name, in the order of Python's state_dict: a module's parameters, its buffers,
// then its children.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

namespace ssd {

struct ModelTensor {
  std::string name;
  torch::Tensor tensor;  // shares memory with the module's
  bool is_parameter = false;
  bool is_of_batch_norm = false;
};

std::vector<ModelTensor> model_tensors(const torch::nn::Module& module);

}  // namespace ssd
