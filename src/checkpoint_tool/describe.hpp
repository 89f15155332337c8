// What is in a checkpoint, as text for people.
#pragma once

#include <string>

#include "checkpoint/checkpoint_item.hpp"

namespace ssd {

// Where the run stood, what it was, and every tensor with dtype, shape and the XXH3-128 of its elements in
// row-major order. For any file that read_checkpoint_file takes, whoever wrote it.
std::string describe_checkpoint(const CheckpointItem& root, std::uint64_t file_bytes);

}  // namespace ssd
