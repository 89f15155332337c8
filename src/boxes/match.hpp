// Which ground truth each default box has to predict: Liu et al. 2016, section 2.2 "Matching strategy".
// A default box takes the ground truth of its highest IoU if that is above 0.5; then every ground truth takes
// its best default box, the later ones last. Equal IoUs: the first ground truth, the first default box. IoU
// is float32 without fused multiply-add, so that exact ties fall the same way on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "boxes/box.hpp"

namespace ssd {

inline constexpr std::int32_t kBackground = -1;

// Not thread safe (keeps its buffers): one for each thread.
class BoxMatcher {
 public:
  BoxMatcher();

  // boxes: ground truth of one picture in [0,1] (parts outside are allowed), any number of them.
  // matched_box: (8732); place in `boxes` of what each default box matches, or kBackground.
  // Throws ContractError for a box that is not finite or has right < left or bottom < top.
  void match(std::span<const BoxLtrb> boxes, std::span<std::int32_t> matched_box);

 private:
  // Default boxes as columns, padded with boxes that meet nothing.
  std::vector<float> left_, top_, right_, bottom_, area_;
  std::vector<float> iou_;           // with the ground truth at hand
  std::vector<float> best_iou_;      // of each default box so far
  std::vector<std::int32_t> best_;   // its ground truth
  std::vector<std::size_t> forced_;  // best default box of each ground truth
};

// What the network has to put out at a default box for a ground truth:
// ((g_cxcy - d_cxcy) / d_wh) / 0.1, ln(g_wh / d_wh) / 0.2. A box of no size gives -infinity.
std::array<float, 4> location_target(const BoxLtrb& box, const BoxCxcywh& default_box);

}  // namespace ssd
