// How many classes the network of a checkpoint tells apart. No torch.
#pragma once

#include "checkpoint/checkpoint_item.hpp"

namespace ssd {

// Without the background, from the shape of the first confidence head. Throws Error where the file has none.
int count_classes(const CheckpointItem& root);

}  // namespace ssd
