// A trained network that finds boxes in pictures of 300 x 300 pixels.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/checkpoint_item.hpp"
#include "infer/infer_options.hpp"
#include "model/detection_decode.hpp"
#include "model/ssd300.hpp"
#include "train/compute_plan.hpp"
#include "train/input_transform.hpp"

namespace ssd {

class Detector {
 public:
  // Weights of a checkpoint file. Sets LibTorch's threads. Throws Error where weights and options do not fit.
  Detector(const CheckpointItem& root, const InferOptions& options, const RankPlacement& placement);

  // images: (count, 300, 300, 3) uint8 RGB. A result for each: boxes whose score is above the threshold, best
  // first. With another count the last bits of scores may differ.
  std::vector<DecodedImage> detect(const std::uint8_t* images, int count);

  Backbone backbone() const { return model_->backbone(); }
  const std::string& description() const { return description_; }  // device, dtype, threads

 private:
  float score_threshold_;
  NmsOptions nms_;
  ComputePlan plan_;
  std::string description_;
  std::unique_ptr<Ssd300> model_;
  std::unique_ptr<ParameterArena> arena_;
  std::optional<InputTransform> transform_;
  torch::Tensor default_boxes_;  // (8732, 4) float32 cxcywh on the device
};

}  // namespace ssd
