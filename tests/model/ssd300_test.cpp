#include "model/ssd300.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "support/golden_numbers.hpp"
#include "support/h5_golden.hpp"

namespace ssd {
namespace {

using nlohmann::json;
using test::GoldenFile;

json state_dict_json(Backbone backbone) {
  std::ifstream stream(fmt::format("{}/golden/state_dict_{}.json", SSD_TEST_DATA, backbone_name(backbone)));
  return json::parse(stream);
}

class EveryBackbone : public testing::TestWithParam<Backbone> {};

TEST_P(EveryBackbone, has_the_reference_state_dict_name_by_name_in_its_order) {
  Ssd300 model(GetParam(), 81);
  const auto wanted = state_dict_json(GetParam());
  const auto tensors = model_tensors(model);
  ASSERT_EQ(tensors.size(), wanted["state_dict"].size());
  std::int64_t parameter_numbers = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& row = wanted["state_dict"][i];
    EXPECT_EQ(tensors[i].name, row["key"]);
    EXPECT_EQ(tensors[i].tensor.sizes().vec(), row["shape"].get<std::vector<std::int64_t>>())
        << tensors[i].name;
    EXPECT_EQ(tensors[i].is_parameter, row["kind"] == "parameter") << tensors[i].name;
    EXPECT_EQ(tensors[i].tensor.scalar_type(), row["dtype"] == "int64" ? torch::kLong : torch::kFloat);
    if (tensors[i].is_parameter) parameter_numbers += tensors[i].tensor.numel();
  }
  EXPECT_EQ(parameter_numbers, wanted["parameters_numel"]);
}

INSTANTIATE_TEST_SUITE_P(Backbones, EveryBackbone, testing::ValuesIn(kBackbones),
                         [](const auto& item) { return backbone_name(item.param); });

TEST(Ssd300Weights, stay_within_the_reference_bounds_and_depend_on_the_seed_alone) {
  Ssd300 model(Backbone::resnet18, 81), again(Backbone::resnet18, 81), other(Backbone::resnet18, 81);
  initialise_weights(model, 1);
  initialise_weights(again, 1);
  initialise_weights(other, 2);
  const auto wanted = state_dict_json(Backbone::resnet18)["initialisation_of_new_layers"];
  const auto tensors = model_tensors(model), same = model_tensors(again), different = model_tensors(other);
  int bounded = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor, is_parameter, is_norm] = tensors[i];
    EXPECT_TRUE(tensor.equal(same[i].tensor)) << name;
    if (!wanted.contains(name) || !wanted[name].contains("bound")) continue;
    const double bound = wanted[name]["bound"];
    const double largest = tensor.abs().max().item<double>();
    EXPECT_LE(largest, bound * (1 + 1e-6)) << name;  // float32 rounding of the bound
    // Of n uniform numbers the largest is above bound * (1 - 15/n) except with probability e^-15.
    EXPECT_GE(largest, bound * (1 - 15.0 / static_cast<double>(tensor.numel()))) << name;
    EXPECT_FALSE(tensor.equal(different[i].tensor)) << name;
    ++bounded;
  }
  EXPECT_EQ(bounded, 34);  // 10 convolutions of the additional blocks, 12 heads with weight and bias
}

TEST(Ssd300Test, a_batch_of_one_cannot_be_trained) {
  Ssd300 model(Backbone::resnet18, 4);
  model.train();
  EXPECT_THROW(model.forward(torch::zeros({1, 3, 300, 300})), c10::Error);
}

TEST(BackboneName, a_wrong_one_lists_the_right_ones) {
  EXPECT_EQ(backbone_from_name("resnet50"), Backbone::resnet50);
  try {
    backbone_from_name("vgg16");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "--backbone 'vgg16': not one of resnet18, resnet34, resnet50, resnet101, resnet152");
  }
}

// Golden forward: tests/data/golden/README.txt, section 6.
struct ForwardCase {
  Backbone backbone;
  torch::ScalarType dtype;
  const char* mode;
  bool channels_last = false;
};

class GoldenForward : public testing::TestWithParam<ForwardCase> {};

double largest_difference(const torch::Tensor& got, const torch::Tensor& wanted) {
  return (got.to(torch::kDouble) - wanted.to(torch::kDouble)).abs().max().item<double>();
}

TEST_P(GoldenForward, equals_the_reference) {
  const auto [backbone, dtype, mode, channels_last] = GetParam();
  const bool is_double = dtype == torch::kDouble;
  const std::string group = mode;
  // README's tolerances: float64 1e-9; float32 5e-5 in evaluation, 1e-3 in training (the 1x1 map's
  // BatchNorm).
  const double tolerance = is_double ? 1e-9 : (group == "eval" ? 5e-5 : 1e-3);
  const double buffer_tolerance = is_double ? 1e-9 : 5e-5;
  const GoldenFile golden(fmt::format("{}/golden/model_{}.h5", SSD_TEST_DATA, backbone_name(backbone)));
  torch::NoGradGuard no_grad;
  Ssd300 model(backbone, 81);
  test::fill_by_rule(model);
  for (const auto& row : state_dict_json(backbone)["state_dict"]) {
    for (const auto& [name, tensor, is_parameter, is_norm] : model_tensors(model)) {
      if (name != row["key"]) continue;
      const auto bytes = std::span(static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes());
      ASSERT_EQ(fmt::format("{:08x}", crc32(bytes)), row["fill_crc32"]) << name;
    }
  }
  if (is_double) model.to(torch::kDouble);
  model.train(group == "train");
  auto images = test::field({2, 3, 300, 300}, "image", 4).to(dtype);
  if (channels_last) {
    model.to(dtype);
    for (auto& weight : model.parameters()) {
      if (weight.dim() == 4) weight.set_data(weight.contiguous(torch::MemoryFormat::ChannelsLast));
    }
    images = images.contiguous(torch::MemoryFormat::ChannelsLast);
  }
  if (group == "eval") {
    const auto maps = model.feature_maps(images);
    for (std::size_t i = 0; i < maps.size(); ++i) {
      const auto name = fmt::format("{}/maps/map_{}", group, i);
      const double norm = golden.attribute<double>(name, "norm_f64");
      EXPECT_NEAR(maps[i].to(torch::kDouble).norm().item<double>(), norm, norm * (is_double ? 1e-11 : 1e-5))
          << name;
    }
  }
  const auto [locations, confidences] = model.forward(images);
  for (const auto& [name, output] : {std::pair{"ploc", locations}, std::pair{"plabel", confidences}}) {
    const auto path = fmt::format("{}/{}/", group, name);
    const auto index = test::tensor_of(golden.read<std::int64_t>(path + "index"));
    const auto wanted = test::tensor_of(golden.read<double>(path + (is_double ? "value_f64" : "value_f32")));
    EXPECT_LE(largest_difference(output.flatten().index_select(0, index), wanted), tolerance) << path;
    const auto complete = fmt::format("{}/{}_image0_f32", group, name);
    if (golden.has(complete)) {  // resnet34's file has the samples alone
      EXPECT_LE(largest_difference(output[0].flatten(), test::tensor_of(golden.read<float>(complete))), 5e-5);
    }
  }
  if (group != "train") return;
  const std::string suffix = is_double ? "_f64" : "_f32";
  int compared = 0;
  for (const auto& [name, tensor, is_parameter, is_norm] : model_tensors(model)) {
    const auto layer = "train/batchnorm/" + name.substr(0, name.rfind('.'));
    if (is_parameter || name.ends_with("num_batches_tracked") || !golden.has(layer)) continue;
    const auto path = layer + name.substr(name.rfind('.')).replace(0, 1, "/") + suffix;
    EXPECT_LE(largest_difference(tensor, test::tensor_of(golden.read<double>(path))), buffer_tolerance)
        << path;
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

INSTANTIATE_TEST_SUITE_P(Runs, GoldenForward,
                         testing::Values(ForwardCase{Backbone::resnet18, torch::kFloat, "eval"},
                                         ForwardCase{Backbone::resnet18, torch::kFloat, "train"},
                                         ForwardCase{Backbone::resnet18, torch::kDouble, "eval"},
                                         ForwardCase{Backbone::resnet18, torch::kDouble, "train"},
                                         ForwardCase{Backbone::resnet34, torch::kDouble, "eval"},
                                         ForwardCase{Backbone::resnet34, torch::kDouble, "train"},
                                         ForwardCase{Backbone::resnet50, torch::kFloat, "eval"},
                                         ForwardCase{Backbone::resnet50, torch::kFloat, "train"},
                                         ForwardCase{Backbone::resnet50, torch::kDouble, "eval"},
                                         ForwardCase{Backbone::resnet50, torch::kDouble, "train"}),
                         [](const auto& item) {
                           return fmt::format("{}_{}_{}", backbone_name(item.param.backbone),
                                              item.param.dtype == torch::kDouble ? "float64" : "float32",
                                              item.param.mode);
                         });

}  // namespace
}  // namespace ssd
