// The weights within a checkpoint: names and tensors.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint_item.hpp"
#include "checkpoint/tensor.hpp"

namespace ssd {

struct NamedTensor {
  std::string name;
  TensorValue tensor;
};

// The state_dict of a file: the value of "model" where there is such a key, else the object itself (a bare
// state_dict). "module." in front of the names, as a data-parallel wrapper leaves it, is taken off where
// every name carries it. In the order of the file. Throws Error, naming the key, for what is no tensor under
// a text key; and for an empty one.
std::vector<NamedTensor> state_dict_of(const CheckpointItem& root);

}  // namespace ssd
