// The classes of a set's two splits, which have to be the same. Local.
#pragma once

#include <filesystem>
#include <vector>

#include "coco/annotations.hpp"
#include "record/split.hpp"

namespace ssd {

// Compares the categories of a split that is about to be packed with those of the other split's shards in the
// folder, if there are any. Classes are matched by their names: val may have fewer than train, but none that
// train lacks, and an id must not have two names. Throws Error for those; another id for a class is a
// warning.
void compare_with_other_split(const std::filesystem::path& folder, Split split,
                              const std::vector<Category>& categories);

}  // namespace ssd
