// Which boxes of a record are training targets, and which records can be trained on. Local; throws nothing of
// its own.
#pragma once

#include <cstdint>
#include <vector>

#include "data/augmentation.hpp"
#include "record/shard_set.hpp"

namespace ssd {

enum class CrowdBoxes { train_on, leave_out };  // the reference trains on them

// The record's training boxes in parts of its width and height, clipped to the picture. Left out are
// untrainable ones, and ones that clipping or float32 leaves no size. Replaces what is in `boxes`.
void training_boxes(const ShardSet& set, const Record& record, CrowdBoxes crowd, SampleBoxes& boxes);

// Places of the records that have a picture and at least one training box, ascending.
std::vector<std::uint32_t> usable_records(const ShardSet& set, CrowdBoxes crowd);

}  // namespace ssd
