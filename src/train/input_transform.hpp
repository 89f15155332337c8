// Pixels of a batch to what the network takes: on the device, normalised, in the compute dtype and layout.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "train/compute_plan.hpp"

namespace ssd {

class InputTransform {
 public:
  explicit InputTransform(const ComputePlan& plan);

  // images: (count, 300, 300, 3) uint8 R G B in host memory. Returns (count, 3, 300, 300), (value / 255 -
  // mean) / deviation with ImageNet's statistics, of the compute dtype.
  torch::Tensor operator()(const std::uint8_t* images, int count) const;

  // The same for (N, 300, 300, 3) uint8 that is on the device already.
  torch::Tensor normalise(const torch::Tensor& pixels) const;

 private:
  torch::Device device_;
  ArenaOptions arena_;
  torch::Tensor scale_, shift_;  // (3) float32 on the device
};

}  // namespace ssd
