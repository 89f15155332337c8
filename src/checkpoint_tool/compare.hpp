// Whether two checkpoints hold the same tensors.
#pragma once

#include <string>

#include "checkpoint/checkpoint_item.hpp"

namespace ssd {

struct Comparison {
  bool are_equal = false;  // the same names, dtypes, shapes and bits
  std::string text;        // a line for each tensor that differs, and one at the end
};

// Tensors are told apart by their path; other values are not compared. Where one of the two is a state_dict
// alone, the weights of both are compared.
Comparison compare_checkpoints(const CheckpointItem& first, const CheckpointItem& second);

}  // namespace ssd
