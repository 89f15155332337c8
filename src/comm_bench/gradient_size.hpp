// How many values the gradients of SSD300 have: what an average in training is about. Without the network and
// LibTorch; tests/train/gradient_size_test.cpp counts them in the parameter arena. What the arena puts
// between tensors, so that each begins at a multiple of 64 bytes, is left out: less than a thousandth.
#pragma once

#include <array>
#include <cstddef>

namespace ssd {

inline constexpr int kGradientClasses = 81;  // COCO's 80 and the background

struct GradientSize {
  const char* backbone;
  std::size_t convolution_count;  // of weights and biases of convolutions: these travel in half precision
  std::size_t batch_norm_count;   // of BatchNorm's parameters: always in FP32
};

inline constexpr std::array<GradientSize, 5> kGradientSizes = {{{"resnet18", 14038710, 9600},
                                                                {"resnet34", 19959990, 15232},
                                                                {"resnet50", 22858934, 35968},
                                                                {"resnet101", 41798838, 88192},
                                                                {"resnet152", 57396406, 134272}}};

}  // namespace ssd
