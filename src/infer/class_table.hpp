// The classes of a checkpoint: names, and the category ids that detections are written with. No torch.
#pragma once

#include <vector>

#include "checkpoint/checkpoint_item.hpp"
#include "coco/annotations.hpp"

namespace ssd {

// In the order of the labels 1, 2, ... Names are those of the file's label_map; without one "class 1", ...
// Ids are those of the truth's categories of the same names, or, without a truth (null), the labels. The
// truth may have only some of the classes (the others get ids that it does not use), or all of them and more.
// A file without names takes names and ids of the truth in order. Throws Error where each has classes that
// the other lacks, and for another number of classes where there are no names.
std::vector<Category> class_table(const CheckpointItem& root, const AnnotationSet* truth);

}  // namespace ssd
