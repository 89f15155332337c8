// The two halves of boxes in the centre form, (..., 4) cx cy w h, as views (..., 2).
#pragma once

#include <torch/torch.h>

namespace ssd {

inline torch::Tensor centres_of(const torch::Tensor& cxcywh) {
  return cxcywh.narrow(-1, 0, 2);
}
inline torch::Tensor sides_of(const torch::Tensor& cxcywh) {
  return cxcywh.narrow(-1, 2, 2);
}

}  // namespace ssd
