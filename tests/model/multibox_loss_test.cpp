// Golden loss and gradients: tests/data/golden/README.txt, section 4.
#include "model/multibox_loss.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "boxes/default_boxes.hpp"
#include "boxes/match.hpp"
#include "model/detection_decode.hpp"
#include "support/golden_numbers.hpp"
#include "support/h5_golden.hpp"

namespace ssd {
namespace {

using test::field;
using test::GoldenFile;
using test::tensor_of;

constexpr int kClasses = 81;

const GoldenFile& loss_file() {
  static const GoldenFile file(SSD_TEST_DATA "/golden/loss.h5");
  return file;
}

// Ground truth of one image by the dataset's target number: boxes cxcywh (8732, 4) and labels (8732).
std::pair<torch::Tensor, torch::Tensor> ground_truth(int target, int synthetic_bound,
                                                     const std::string& label_name) {
  static const GoldenFile default_file(SSD_TEST_DATA "/golden/default_boxes.h5");
  static const GoldenFile encode_file(SSD_TEST_DATA "/golden/encode.h5");
  auto boxes = tensor_of(default_file.read<float>("background_xywh")).view({kDefaultBoxCount, 4}).clone();
  auto labels = torch::zeros({kDefaultBoxCount}, torch::kLong);
  if (target >= 0) {
    const auto group = fmt::format("case_{:02}/", target);
    const auto index = tensor_of(encode_file.read<std::int64_t>(group + "index"));
    boxes.index_put_({index}, tensor_of(encode_file.read<float>(group + "target_xywh")).view({-1, 4}));
    labels.index_put_({index}, tensor_of(encode_file.read<std::int64_t>(group + "target_label")));
  } else if (target == -2) {
    const auto xywh = default_boxes_tensor();
    const auto salt = test::salt_of(label_name);
    for (std::int64_t i = 0; i < kDefaultBoxCount; ++i) {
      const auto q = test::hash_of(static_cast<std::uint32_t>(i), salt);
      if (static_cast<int>(q >> 16) >= synthetic_bound) continue;
      labels[i] = static_cast<std::int64_t>(1 + (q & 0xffffU) % 80);
      boxes[i] = xywh[(i * 4095 + 17) % kDefaultBoxCount];
    }
  }
  return {boxes, labels};
}

struct LossCase {
  torch::Tensor locations, confidences;  // float32
  LossTargets targets;                   // float32 offsets
  torch::Tensor boxes_cxcywh;            // (N, 8732, 4)
};

LossCase load_case(int k) {
  const auto group = fmt::format("case_{:02}", k);
  const auto& file = loss_file();
  const auto batch = file.attribute<std::int64_t>(group, "batch");
  const auto rule = file.text_attribute(group, "plabel_rule");
  const double scale = file.attribute<double>(group, "plabel_scale");
  const auto name = fmt::format("plabel_{}", k);
  LossCase out;
  out.locations = field({batch, 4, kDefaultBoxCount}, fmt::format("ploc_{}", k),
                        file.attribute<double>(group, "ploc_scale"));
  if (rule == "zero") {
    out.confidences = torch::zeros({batch, kClasses, kDefaultBoxCount});
  } else if (rule == "mod16") {
    const auto index = torch::arange(kDefaultBoxCount).remainder(16);
    out.confidences = field({batch, kClasses, 16}, name, scale).index_select(2, index);
  } else {
    out.confidences = field({batch, kClasses, kDefaultBoxCount}, name, scale);
  }
  out.confidences.select(1, 0) += file.attribute<double>(group, "background_bonus");
  std::vector<torch::Tensor> boxes, labels;
  const auto target = file.read<std::int32_t>(group + "/target");
  for (std::size_t n = 0; n < target.size(); ++n) {
    const auto [box, label] =
        ground_truth(target[n], static_cast<int>(file.attribute<std::int64_t>(group, "synthetic_T")),
                     fmt::format("label_{}_{}", k, n));
    boxes.push_back(box);
    labels.push_back(label);
  }
  out.boxes_cxcywh = torch::stack(boxes);
  out.targets.labels = torch::stack(labels);
  return out;
}

class GoldenLoss : public testing::TestWithParam<std::tuple<int, torch::ScalarType>> {};

TEST_P(GoldenLoss, equals_the_reference_in_value_and_gradient) {
  const auto [k, dtype] = GetParam();
  const bool is_double = dtype == torch::kDouble;
  const auto group = fmt::format("case_{:02}", k);
  auto [locations, confidences, targets, boxes] = load_case(k);
  targets.offsets = encode_offsets(boxes.to(dtype), default_boxes_tensor().to(dtype)).transpose(1, 2);
  locations = locations.to(dtype).requires_grad_();
  confidences = confidences.to(dtype).requires_grad_();
  const auto loss = multibox_loss(locations, confidences, targets);
  loss.backward();
  const double wanted = is_double ? loss_file().read<double>(group + "/loss_f64")[0]
                                  : double{loss_file().read<float>(group + "/loss_f32")[0]};
  // README: 1e-5 relative in float32, 1e-12 in float64.
  if (std::isinf(wanted)) {
    EXPECT_EQ(loss.item<double>(), wanted);
  } else {
    EXPECT_NEAR(loss.item<double>(), wanted, std::abs(wanted) * (is_double ? 1e-12 : 1e-5));
  }
  const bool is_unique = loss_file().attribute<std::int32_t>(group, "gradient_unique") != 0;
  for (const auto& [name, gradient] :
       {std::pair{"grad_ploc", locations.grad()}, std::pair{"grad_plabel", confidences.grad()}}) {
    const auto path = group + "/" + name + "/";
    const double norm = loss_file().read<double>(path + (is_double ? "norm_f64" : "norm_f32"))[0];
    EXPECT_NEAR(gradient.to(torch::kDouble).norm().item<double>(), norm, norm * (is_double ? 1e-11 : 1e-5))
        << path;
    // Counted in the float32 run, where some gradients of float64 are rounded to 0.
    if (!is_double) {
      EXPECT_EQ(gradient.ne(0).sum().item<std::int64_t>(),
                loss_file().read<std::int64_t>(path + "nonzero")[0])
          << path;
    }
    if (!is_unique) continue;
    const auto index = tensor_of(loss_file().read<std::int64_t>(path + "index"));
    const auto values = is_double ? tensor_of(loss_file().read<double>(path + "value_f64"))
                                  : tensor_of(loss_file().read<float>(path + "value_f32"));
    const auto difference = (gradient.flatten().index_select(0, index) - values).abs().max().item<double>();
    EXPECT_LE(difference, is_double ? 1e-13 : 1e-6) << path;  // README, section 4
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenLoss,
                         testing::Combine(testing::Range(0, 18),
                                          testing::Values(torch::kFloat, torch::kDouble)),
                         [](const auto& item) {
                           return fmt::format(
                               "case_{:02}_{}", std::get<0>(item.param),
                               std::get<1>(item.param) == torch::kDouble ? "float64" : "float32");
                         });

TEST(LossTargetsTest, are_the_golden_boxes_and_labels_of_the_matched_default_boxes) {
  const GoldenFile encode(SSD_TEST_DATA "/golden/encode.h5");
  for (const int k : {10, 12, 45}) {
    const auto group = fmt::format("case_{:02}/", k);
    const auto boxes = tensor_of(encode.read<float>(group + "boxes_ltrb")).view({1, -1, 4});
    const auto box_labels =
        tensor_of(encode.read<std::int64_t>(group + "labels")).to(torch::kInt).view({1, -1});
    std::vector<BoxLtrb> plain;
    for (std::int64_t i = 0; i < boxes.size(1); ++i) {
      const auto* at = boxes.data_ptr<float>() + 4 * i;
      plain.push_back({at[0], at[1], at[2], at[3]});
    }
    auto matched = torch::empty({1, kDefaultBoxCount}, torch::kInt);
    BoxMatcher().match(plain, std::span(matched.data_ptr<std::int32_t>(), kDefaultBoxCount));
    const auto targets = build_loss_targets(default_boxes_tensor(), matched, boxes, box_labels);
    const auto index = tensor_of(encode.read<std::int64_t>(group + "index"));
    const auto label = tensor_of(encode.read<std::int64_t>(group + "target_label"));
    EXPECT_TRUE(targets.labels[0].index_select(0, index).equal(label));
    EXPECT_EQ(targets.labels.gt(0).sum().item<std::int64_t>(), index.size(0));
    const auto wanted = tensor_of(encode.read<float>(group + "vec")).view({-1, 4});
    const auto got = targets.offsets[0].transpose(0, 1).index_select(0, index);
    EXPECT_LE((got - wanted).abs().max().item<double>(), 1e-5);  // README, section 3
  }
}

TEST(MultiboxLoss, of_a_batch_without_any_box_is_zero_with_zero_gradients) {
  const LossTargets targets{torch::zeros({2, kDefaultBoxCount}, torch::kLong),
                            torch::zeros({2, 4, kDefaultBoxCount})};
  auto locations = torch::randn({2, 4, kDefaultBoxCount}).requires_grad_();
  auto confidences = torch::randn({2, 3, kDefaultBoxCount}).requires_grad_();
  const auto loss = multibox_loss(locations, confidences, targets);
  loss.backward();
  EXPECT_EQ(loss.item<float>(), 0);
  EXPECT_EQ(locations.grad().abs().max().item<float>(), 0);
  EXPECT_EQ(confidences.grad().abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace ssd
