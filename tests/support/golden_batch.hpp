// The two training batches of the golden SGD steps: tests/data/golden/README.txt, section 7.
#pragma once

#include <fmt/format.h>

#include "boxes/default_boxes.hpp"
#include "model/detection_decode.hpp"
#include "model/multibox_loss.hpp"
#include "support/golden_numbers.hpp"
#include "support/h5_golden.hpp"

namespace ssd::test {

struct GoldenBatch {
  torch::Tensor images;  // (2, 3, 300, 300)
  LossTargets targets;
};

inline GoldenBatch golden_batch(int b, torch::ScalarType type) {
  static constexpr std::array<std::array<int, 2>, 2> kEncodeCases{{{10, 45}, {12, 46}}};
  const GoldenFile encode(SSD_TEST_DATA "/golden/encode.h5");
  const GoldenFile defaults(SSD_TEST_DATA "/golden/default_boxes.h5");
  std::vector<torch::Tensor> boxes, labels;
  for (const int k : kEncodeCases[static_cast<std::size_t>(b)]) {
    const auto group = fmt::format("case_{:02}/", k);
    const auto index = tensor_of(encode.read<std::int64_t>(group + "index"));
    boxes.push_back(tensor_of(defaults.read<float>("background_xywh")).view({kDefaultBoxCount, 4}));
    boxes.back().index_put_({index}, tensor_of(encode.read<float>(group + "target_xywh")).view({-1, 4}));
    labels.push_back(torch::zeros({kDefaultBoxCount}, torch::kLong));
    labels.back().index_put_({index}, tensor_of(encode.read<std::int64_t>(group + "target_label")));
  }
  const auto offsets =
      encode_offsets(torch::stack(boxes).to(type), default_boxes_tensor().to(type)).transpose(1, 2);
  return {field({2, 3, 300, 300}, fmt::format("train_image_{}", b), 4).to(type),
          {torch::stack(labels), offsets}};
}

}  // namespace ssd::test
