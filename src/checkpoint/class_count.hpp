// How many classes the network of a checkpoint tells apart, and which. No torch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_item.hpp"

namespace ssd {

// Without the background, from the shape of the first confidence head. Throws Error where the file has none.
int count_classes(const CheckpointItem& root);

// The names of the labels 1, 2, ... by the file's label_map, "class 3" where it has none for a label. Nothing
// where the file has no label_map. Throws Error as count_classes.
std::optional<std::vector<std::string>> class_names_of(const CheckpointItem& root);

}  // namespace ssd
