// SSD300: backbone, five additional blocks, a localisation and a confidence head on each of six feature maps.
// Liu et al. 2016, section 2.1. Names of parameters and buffers are the reference's; files are exchanged both
// ways.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "model/backbone.hpp"

namespace ssd {

// What the network gives for N images, in the dtype of its convolutions. Location channels and box order: see
// default_boxes.hpp.
struct Predictions {
  torch::Tensor locations;    // (N, 4, 8732) dx dy dw dh, in units of the variances
  torch::Tensor confidences;  // (N, classes, 8732) logits, class 0 = background
};

class Ssd300 : public torch::nn::Module {
 public:
  // class_count with the background: 81 for COCO.
  Ssd300(Backbone backbone, int class_count);

  // images: (N, 3, 300, 300), normalised, in the dtype of the convolution weights. In training mode N must be
  // at least 2: the last BatchNorm sees a 1x1 map.
  Predictions forward(const torch::Tensor& images);

  // The six feature maps, (N, C, S, S) with S = 38, 19, 10, 5, 3, 1 and C of feature_map_channels.
  std::vector<torch::Tensor> feature_maps(const torch::Tensor& images);

  // For inference in evaluation mode: the BatchNorms become part of the convolutions' weights, as they are
  // now, until unfold(). See model/convolution_unit.hpp.
  void fold();
  void unfold();

  Backbone backbone() const { return backbone_; }
  int class_count() const { return class_count_; }

 private:
  Backbone backbone_;
  int class_count_;
  void for_each_unit(const UnitFunction& function);

  std::shared_ptr<FeatureExtractor> feature_extractor_;
  torch::nn::ModuleList additional_blocks_;
  std::vector<std::array<ConvolutionUnit, 2>> additional_units_;
  torch::nn::ModuleList location_heads_;
  torch::nn::ModuleList confidence_heads_;
};

// Initial weights: Xavier uniform for tensors of more than one dimension in the additional blocks and heads
// (Glorot and Bengio 2010), He normal by fan-out for the backbone's convolutions (He et al. 2015, as
// torchvision does), PyTorch's defaults for the rest. Depends on the seed alone.
void initialise_weights(Ssd300& model, std::uint64_t seed);

}  // namespace ssd
