// Greedy non-maximum suppression within each class: the last step of detection. Local, thread safe,
// deterministic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boxes/box.hpp"
#include "boxes/constants.hpp"

namespace ssd {

struct NmsOptions {
  float iou_threshold =
      kNmsIouThreshold;  // a box stays while its IoU with every better box kept is below this
  int candidates_per_class = kNmsCandidatesPerClass;
  int max_output = kMaxDetections;  // of all classes together
};

// Candidates of one picture in any order; the three spans have one length. Only the caller knows the score
// threshold and the background class: pass neither weak boxes nor background.
struct NmsCandidates {
  std::span<const BoxLtrb> boxes_ltrb;
  std::span<const float> scores;  // no NaN
  std::span<const std::int32_t> labels;
};

// Places of the boxes that stay, best score first. Equal scores: within a class the later candidate goes
// first into suppression (golden data, section 8: candidates in the order of their default boxes); in the
// output the lower label comes first, then the order of suppression. An IoU that is NaN suppresses. Throws
// ContractError for spans of unequal length.
std::vector<std::size_t> suppress(const NmsCandidates& candidates, const NmsOptions& options = {});

}  // namespace ssd
