// The MultiBox loss: smooth L1 on the locations of matched default boxes, cross entropy on their classes and
// on the hardest negatives, 3 for each positive. Liu et al. 2016, section 2.2, equations 1 to 3;
// normalisation by image as in the reference: (location + confidence) / positives of each image, 0 without
// positives, mean over the batch.
#pragma once

#include <torch/torch.h>

namespace ssd {

struct LossTargets {
  torch::Tensor labels;   // (N, 8732) int64, 0 = background
  torch::Tensor offsets;  // (N, 4, 8732) float32 or float64: dx dy dw dh of the matched ground truth; 0 where
                          // the label is 0
};

// default_boxes_cxcywh: (8732, 4). matched_box: (N, 8732) int32, a row of the image's boxes or -1.
// boxes_ltrb: (N, B, 4) in [0,1]. box_labels: (N, B) int32. All on one device; the offsets are computed in
// the boxes' dtype.
LossTargets build_loss_targets(const torch::Tensor& default_boxes_cxcywh, const torch::Tensor& matched_box,
                               const torch::Tensor& boxes_ltrb, const torch::Tensor& box_labels);

// ((g_cxcy - d_cxcy) / d_wh) / 0.1 and ln(g_wh / d_wh) / 0.2; shapes (..., 4), boxes cxcywh.
torch::Tensor encode_offsets(const torch::Tensor& ground_truth_cxcywh,
                             const torch::Tensor& default_boxes_cxcywh);

// locations (N, 4, 8732), confidences (N, classes, 8732), float32 or float64. Returns a scalar. No
// host-device synchronisation. Equal losses are ranked by place (stable sort), so the result is
// deterministic.
torch::Tensor multibox_loss(const torch::Tensor& locations, const torch::Tensor& confidences,
                            const LossTargets& targets);

}  // namespace ssd
