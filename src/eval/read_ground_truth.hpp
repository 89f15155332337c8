// The ground truth of ssd_eval: an annotation JSON, or one split of a folder of shards, which holds the same.
// Local. Throws Error.
#pragma once

#include <filesystem>

#include "coco/annotations.hpp"
#include "record/shard_set.hpp"
#include "record/split.hpp"

namespace ssd {

AnnotationSet read_ground_truth(const std::filesystem::path& path, Split split);

// Categories, images and annotations as the JSON had them, annotations in its order.
AnnotationSet annotation_set_of(const ShardSet& shards);

}  // namespace ssd
