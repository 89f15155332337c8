// The classes of a checkpoint: names, and the category ids that detections are written with. No torch.
#pragma once

#include <vector>

#include "checkpoint/checkpoint_item.hpp"
#include "coco/annotations.hpp"

namespace ssd {

// In the order of the labels 1, 2, ... Names are those of the file's label_map; without one "class 1", ...
// Ids are those of the truth's categories of the same names, or, without a truth (null), the labels. A file
// without names takes names and ids of the truth in order. Throws Error for a name that the truth does not
// have, or another number of classes.
std::vector<Category> class_table(const CheckpointItem& root, const AnnotationSet* truth);

}  // namespace ssd
