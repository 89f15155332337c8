// The weights within a checkpoint: names and tensors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_item.hpp"
#include "checkpoint/tensor.hpp"

namespace ssd {

struct NamedTensor {
  std::string name;
  TensorValue tensor;
};

// The state_dict of a file, in the order of the file: what lies under "model", "state_dict" or another key
// that programs put it under, also within each other; else the object itself (a bare state_dict). Of the
// names is taken off what wrappers leave there: "_orig_mod." (torch.compile), and in front, where every name
// carries it, "module." (data parallel), "model." and "backbone.". Throws Error, naming the key, for what is
// no tensor under a text key; and for an empty one.
std::vector<NamedTensor> state_dict_of(const CheckpointItem& root);

// The key of the file under which the state_dict is; nothing for a bare one. Throws Error for what is no
// dict.
std::optional<std::string> state_dict_key(const CheckpointItem& root);

}  // namespace ssd
