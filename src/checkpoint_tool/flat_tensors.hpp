// All tensors of a checkpoint, wherever they are in it.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint_item.hpp"
#include "checkpoint/tensor.hpp"

namespace ssd {

struct FlatTensor {
  std::string path;  // keys joined by "/": "model/label_net.0.weight", "optimizer/state/0/momentum_buffer"
  TensorValue tensor;
};

// In the order of the file.
std::vector<FlatTensor> flat_tensors(const CheckpointItem& root);

std::string shape_text(const TensorValue& tensor);  // "64x3x7x7"; "scalar" for no dimensions

}  // namespace ssd
