// From the network's predictions to detections: boxes from offsets, softmax, score threshold, suppression.
// Reference's decode_batch; the parts that are no tensor work are in boxes/nms.hpp.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "boxes/box.hpp"
#include "boxes/nms.hpp"

namespace ssd {

struct DecodedImage {
  // Best score first; the three have one length, at most max_output.
  std::vector<BoxLtrb> boxes_ltrb;  // in [0,1] of the picture, not clamped
  std::vector<float> scores;
  std::vector<std::int32_t> labels;  // 1 to classes - 1
};

// locations (N, 4, 8732) and confidences (N, classes, 8732) of any floating dtype and device; computed in
// float32. default_boxes_cxcywh: (8732, 4) float32 on the same device. Boxes that are not finite are left
// out.
std::vector<DecodedImage> decode_detections(const torch::Tensor& locations, const torch::Tensor& confidences,
                                            const torch::Tensor& default_boxes_cxcywh,
                                            const NmsOptions& options = {});

// The default boxes as a (8732, 4) float32 tensor, cxcywh.
torch::Tensor default_boxes_tensor();

}  // namespace ssd
