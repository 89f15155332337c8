#include "model/ssd300.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "support/golden_numbers.hpp"
#include "support/h5_golden.hpp"
#include "support/rounding_noise.hpp"

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
    EXPECT_EQ(tensors[i].name, row["key"].get<std::string>());
    EXPECT_EQ(tensors[i].tensor.sizes().vec(), row["shape"].get<std::vector<std::int64_t>>())
        << tensors[i].name;
    EXPECT_EQ(tensors[i].is_parameter, row["kind"] == "parameter") << tensors[i].name;
    EXPECT_EQ(tensors[i].tensor.scalar_type(), row["dtype"] == "int64" ? torch::kLong : torch::kFloat);
    if (tensors[i].is_parameter) parameter_numbers += tensors[i].tensor.numel();
  }
  EXPECT_EQ(parameter_numbers, wanted["parameters_numel"].get<std::int64_t>());
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
};

class GoldenForward : public testing::TestWithParam<ForwardCase> {};

using TensorMap = std::map<std::string, torch::Tensor>;

double largest_difference(const torch::Tensor& got, const torch::Tensor& wanted) {
  return (got.to(torch::kDouble) - wanted.to(torch::kDouble)).abs().max().item<double>();
}

void expect_weights_of_the_rule(Ssd300& model) {
  for (const auto& row : state_dict_json(model.backbone())["state_dict"]) {
    for (const auto& [name, tensor, is_parameter, is_norm] : model_tensors(model)) {
      if (name != row["key"].get<std::string>()) continue;
      const auto bytes = std::span(static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes());
      ASSERT_EQ(fmt::format("{:08x}", crc32(bytes)), row["fill_crc32"].get<std::string>()) << name;
    }
  }
}

// What the network gives, in float64: ploc, plabel; in evaluation its six maps; in training the statistics.
TensorMap results_of(Backbone backbone, torch::ScalarType dtype, const std::string& mode) {
  torch::NoGradGuard no_grad;
  Ssd300 model(backbone, 81);
  test::fill_by_rule(model);
  expect_weights_of_the_rule(model);
  model.to(dtype);
  model.train(mode == "train");
  const auto images = test::field({2, 3, 300, 300}, "image", 4).to(dtype);
  TensorMap results;
  if (mode == "eval") {
    const auto maps = model.feature_maps(images);
    for (std::size_t i = 0; i < maps.size(); ++i)
      results[fmt::format("map_{}", i)] = maps[i].to(torch::kDouble);
  }
  const auto [locations, confidences] = model.forward(images);
  results["ploc"] = locations.to(torch::kDouble);
  results["plabel"] = confidences.to(torch::kDouble);
  for (const auto& [name, tensor, is_parameter, is_norm] : model_tensors(model)) {
    if (mode == "train" && name.find(".running_") != std::string::npos)
      results[name] = tensor.to(torch::kDouble);
  }
  return results;
}

// README, section 6: 1e-9, and 1e-11 of a norm.
void check_against_golden(Backbone backbone, const std::string& mode, const TensorMap& results) {
  const GoldenFile golden(fmt::format("{}/golden/model_{}.h5", SSD_TEST_DATA, backbone_name(backbone)));
  int maps = 0, statistics = 0;
  for (const auto& [name, tensor] : results) {
    if (name.starts_with("map_")) {
      const double norm = golden.attribute<double>(fmt::format("{}/maps/{}", mode, name), "norm_f64");
      EXPECT_NEAR(tensor.norm().item<double>(), norm, norm * 1e-11) << name;
      ++maps;
    } else if (name.starts_with("p")) {
      const auto path = fmt::format("{}/{}/", mode, name);
      const auto index = test::tensor_of(golden.read<std::int64_t>(path + "index"));
      const auto wanted = test::tensor_of(golden.read<double>(path + "value_f64"));
      EXPECT_LE(largest_difference(tensor.flatten().index_select(0, index), wanted), 1e-9) << path;
    } else if (const auto layer = "train/batchnorm/" + name.substr(0, name.rfind('.')); golden.has(layer)) {
      const auto path = layer + name.substr(name.rfind('.')).replace(0, 1, "/") + "_f64";
      EXPECT_LE(largest_difference(tensor, test::tensor_of(golden.read<double>(path))), 1e-9) << path;
      ++statistics;
    }
  }
  EXPECT_EQ(maps, mode == "eval" ? 6 : 0);
  EXPECT_GE(statistics, mode == "train" ? 10 : 0);
}

// The results in float64, checked; of the last backbone and mode asked for.
const TensorMap& exact_results(Backbone backbone, const std::string& mode) {
  static std::string of_which;
  static TensorMap results;
  const auto which = backbone_name(backbone) + mode;
  if (of_which != which) {
    results = results_of(backbone, torch::kDouble, mode);
    of_which = which;
    check_against_golden(backbone, mode, results);
  }
  return results;
}

// Of single values the errors differ more than on average: each is of its own sum's size.
constexpr double kLargest = 4;

// In float64 the reference's values; in float32 no further from them than rounding carries float32.
TEST_P(GoldenForward, equals_the_reference) {
  const auto [backbone, dtype, mode] = GetParam();
  torch::set_num_threads(1);
  const auto& exact = exact_results(backbone, mode);
  if (dtype == torch::kDouble) return;
  const auto got = results_of(backbone, dtype, mode);
  const test::RoundingNoise noise(test::kFloatUnit, 1);
  const auto noisy = results_of(backbone, torch::kDouble, mode);
  for (const auto& [name, wanted] : exact) {
    const auto is_statistic = name.find(".running_") != std::string::npos;
    const auto error = got.at(name) - wanted, reach = noisy.at(name) - wanted;
    // Statistics are rounded thrice more: twice multiplied, once added.
    const double rounding = is_statistic ? 3 * test::kFloatUnit : 0;
    const double norm_bound =
        test::kRoundingSafety * (reach.norm().item<double>() + rounding * wanted.norm().item<double>());
    const double largest_bound =
        kLargest * test::kRoundingSafety *
        (reach.abs().max().item<double>() + rounding * wanted.abs().max().item<double>());
    EXPECT_GT(reach.norm().item<double>(), 0) << name;
    EXPECT_LE(error.norm().item<double>(), norm_bound) << name;
    EXPECT_LE(error.abs().max().item<double>(), largest_bound) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, GoldenForward,
                         testing::Values(ForwardCase{Backbone::resnet18, torch::kFloat, "eval"},
                                         ForwardCase{Backbone::resnet18, torch::kDouble, "eval"},
                                         ForwardCase{Backbone::resnet18, torch::kFloat, "train"},
                                         ForwardCase{Backbone::resnet18, torch::kDouble, "train"},
                                         ForwardCase{Backbone::resnet34, torch::kDouble, "eval"},
                                         ForwardCase{Backbone::resnet34, torch::kDouble, "train"},
                                         ForwardCase{Backbone::resnet50, torch::kFloat, "eval"},
                                         ForwardCase{Backbone::resnet50, torch::kDouble, "eval"},
                                         ForwardCase{Backbone::resnet50, torch::kFloat, "train"},
                                         ForwardCase{Backbone::resnet50, torch::kDouble, "train"}),
                         [](const auto& item) {
                           return fmt::format("{}_{}_{}", backbone_name(item.param.backbone),
                                              item.param.dtype == torch::kDouble ? "float64" : "float32",
                                              item.param.mode);
                         });

}  // namespace
}  // namespace ssd
