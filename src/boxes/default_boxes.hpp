// The 8732 default boxes (priors) of SSD300: a constant table, made on first use. Safe from any thread.
// Order: map, then shape within the cell, then row, then column.
#pragma once

#include <vector>

#include "boxes/box.hpp"
#include "boxes/constants.hpp"

namespace ssd {

struct DefaultBoxes {
  std::vector<BoxCxcywh> cxcywh;  // (8732, 4) float32, clamped to [0,1]
  std::vector<BoxLtrb> ltrb;      // (8732, 4) float32, of the clamped cxcywh; itself not clamped
};

const DefaultBoxes& default_boxes();

// Place of a map's first default box; kMapCount gives 8732.
int first_default_box(int map);

}  // namespace ssd
