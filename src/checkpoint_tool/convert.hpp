// Smaller checkpoints made of larger ones.
#pragma once

#include <optional>
#include <vector>

#include "checkpoint/checkpoint_item.hpp"
#include "checkpoint/tensor.hpp"

namespace ssd {

enum class Part {
  weights,            // the model's OrderedDict alone
  without_optimizer,  // all keys but "optimizer" and "scheduler"; the state_dict is under "model"
};

// dtype: what floating tensors of the model become, rounded to nearest even; nothing: as they are. Throws
// Error, which names the tensor, where a finite number would become infinite.
Value convert_checkpoint(const CheckpointItem& root, Part part, std::optional<DType> dtype);

bool is_floating(DType dtype);
std::vector<double> to_doubles(const TensorValue& tensor);  // of a floating one, row-major, exactly

}  // namespace ssd
