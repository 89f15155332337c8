// The ground truth of ssd_eval where it is one split of a folder of shards, which holds what the JSON did.
#pragma once

#include "coco/annotations.hpp"
#include "record/shard_set.hpp"

namespace ssd {

// Categories, images and annotations as the JSON had them, annotations in its order.
AnnotationSet annotation_set_of(const ShardSet& shards);

}  // namespace ssd
