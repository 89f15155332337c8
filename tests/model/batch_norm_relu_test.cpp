// The one-operation BatchNorm, addition and ReLU against ATen's operations in double.
#include "model/batch_norm_relu.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "model/convolution_unit.hpp"
#include "model/ssd300.hpp"

namespace ssd {
namespace {

constexpr std::int64_t kBatch = 3, kChannels = 37, kHeight = 11,
                       kWidth = 13;  // no multiple of a vector or a block

struct Case {
  torch::ScalarType type;
  bool has_residual, with_relu;
};

class BatchNormReluTest : public testing::TestWithParam<Case> {};

struct Operands {
  torch::Tensor input, residual, weight, bias, output_gradient;
};

Operands make_operands(const Case& run) {
  torch::manual_seed(5);
  const auto map = [&] {
    return torch::randn({kBatch, kChannels, kHeight, kWidth})
        .contiguous(torch::MemoryFormat::ChannelsLast)
        .to(run.type);
  };
  // Means far from 0 compared with the deviation, as a sum of squares alone would lose.
  const auto input = (map() * .5 + 20 * torch::randn({1, kChannels, 1, 1}).to(run.type))
                         .contiguous(torch::MemoryFormat::ChannelsLast);
  return {input, run.has_residual ? map() : torch::Tensor(), torch::rand({kChannels}) + .5,
          torch::randn({kChannels}), map()};
}

struct Results {
  torch::Tensor output, input_gradient, residual_gradient, weight_gradient, bias_gradient, running_mean,
      running_variance;
};

Results run_with(const Case& run, const Operands& from, torch::ScalarType type, torch::MemoryFormat layout) {
  const auto real = type == torch::kBFloat16 ? torch::kFloat : type;
  torch::nn::BatchNorm2d norm(kChannels);
  norm->to(real);
  {
    torch::NoGradGuard no_grad;
    norm->weight.copy_(from.weight);
    norm->bias.copy_(from.bias);
  }
  const auto input = from.input.to(type).contiguous(layout).detach().requires_grad_(true);
  auto residual = run.has_residual ? from.residual.to(type).contiguous(layout).detach().requires_grad_(true)
                                   : torch::Tensor();
  const auto output = batch_norm_relu(*norm, input, residual, run.with_relu);
  output.backward(from.output_gradient.to(type).contiguous(layout));
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 1);
  return {output.detach(),     input.grad(),      run.has_residual ? residual.grad() : torch::zeros(1),
          norm->weight.grad(), norm->bias.grad(), norm->running_mean,
          norm->running_var};
}

void expect_close(const torch::Tensor& got, const torch::Tensor& wanted, double bound, const char* what) {
  const auto difference = (got.to(torch::kDouble) - wanted).abs().max().item<double>();
  EXPECT_LE(difference, bound * std::max(1.0, wanted.abs().max().item<double>())) << what;
}

TEST_P(BatchNormReluTest, equals_the_separate_operations_in_double) {
  const auto run = GetParam();
  const auto operands = make_operands(run);
  const auto got = run_with(run, operands, run.type, torch::MemoryFormat::ChannelsLast);
  const auto wanted = run_with(run, operands, torch::kDouble, torch::MemoryFormat::Contiguous);
  // Relative to the largest value: double keeps 15 digits through 429 additions; float 6 (values of 60 with
  // deviations of .5 lose two); BF16 rounds results once, to 8 bits, and its ReLU may fall on the other side
  // of 0.
  const double bound = run.type == torch::kDouble ? 1e-12 : (run.type == torch::kFloat ? 2e-5 : 0x1p-8);
  expect_close(got.output, wanted.output, bound, "output");
  expect_close(got.weight_gradient, wanted.weight_gradient, run.type == torch::kBFloat16 ? .02 : bound,
               "weight");
  expect_close(got.bias_gradient, wanted.bias_gradient, run.type == torch::kBFloat16 ? .02 : bound, "bias");
  expect_close(got.running_mean, wanted.running_mean, std::min(bound, 1e-6), "running mean");
  expect_close(got.running_variance, wanted.running_variance, std::min(bound, 1e-5), "running variance");
  // Where an output is within rounding of 0 the two may disagree on the ReLU: those elements are left out.
  const auto is_clear = run.with_relu ? (wanted.output > .02).logical_or(got.output.to(torch::kDouble) == 0)
                                      : torch::ones_like(wanted.output).to(torch::kBool);
  const auto both = is_clear.logical_and((wanted.output > 0) == (got.output.to(torch::kDouble) > 0));
  EXPECT_GE(both.to(torch::kDouble).mean().item<double>(), .95);
  expect_close(got.input_gradient.to(torch::kDouble) * both, wanted.input_gradient * both,
               run.type == torch::kBFloat16 ? .02 : bound, "input");
  if (run.has_residual)
    expect_close(got.residual_gradient.to(torch::kDouble) * both, wanted.residual_gradient * both, bound,
                 "residual");
}

TEST_P(BatchNormReluTest, gives_the_same_bits_for_any_number_of_threads) {
  const auto run = GetParam();
  const auto operands = make_operands(run);
  const int threads = torch::get_num_threads();
  torch::set_num_threads(1);
  const auto one = run_with(run, operands, run.type, torch::MemoryFormat::ChannelsLast);
  torch::set_num_threads(3);
  const auto three = run_with(run, operands, run.type, torch::MemoryFormat::ChannelsLast);
  torch::set_num_threads(threads);
  EXPECT_TRUE(one.output.equal(three.output));
  EXPECT_TRUE(one.input_gradient.equal(three.input_gradient));
  EXPECT_TRUE(one.weight_gradient.equal(three.weight_gradient));
  EXPECT_TRUE(one.running_variance.equal(three.running_variance));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BatchNormReluTest,
    testing::Values(Case{torch::kDouble, false, true}, Case{torch::kDouble, true, true},
                    Case{torch::kDouble, false, false}, Case{torch::kDouble, true, false},
                    Case{torch::kFloat, false, true}, Case{torch::kFloat, true, true},
                    Case{torch::kFloat, false, false}, Case{torch::kBFloat16, false, true},
                    Case{torch::kBFloat16, true, true}, Case{torch::kBFloat16, false, false}),
    [](const auto& item) {
      const std::string type = item.param.type == torch::kDouble
                                   ? "float64"
                                   : (item.param.type == torch::kFloat ? "float32" : "bfloat16");
      return type + (item.param.has_residual ? "_residual" : "") + (item.param.with_relu ? "_relu" : "");
    });

TEST(BatchNormRelu, an_infinite_input_is_seen_in_the_output) {
  torch::nn::BatchNorm2d norm(4);
  auto input = torch::ones({2, 4, 3, 3}).contiguous(torch::MemoryFormat::ChannelsLast);
  input[1][2][1][1] = std::numeric_limits<float>::infinity();
  const auto output = batch_norm_relu(*norm, input, {}, true);
  EXPECT_TRUE(output.select(1, 2).isnan().any().item<bool>());
  EXPECT_TRUE(output.select(1, 1).isfinite().all().item<bool>());
}

TEST(FoldedSsd300, gives_the_predictions_of_evaluation_mode) {
  for (const auto type : {torch::kDouble, torch::kFloat}) {
    torch::NoGradGuard no_grad;
    Ssd300 model(Backbone::resnet18, 5);
    initialise_weights(model, 3);
    model.to(type);
    torch::manual_seed(7);
    for (auto& buffer : model.named_buffers()) {  // statistics as of a trained network: none is 0 or 1
      if (buffer.key().ends_with("running_mean")) buffer.value().uniform_(-.2, .2);
      if (buffer.key().ends_with("running_var")) buffer.value().uniform_(.5, 2);
    }
    model.eval();
    const auto images = torch::randn({1, 3, 300, 300}).to(type).contiguous(torch::MemoryFormat::ChannelsLast);
    const auto wanted = model.forward(images);
    model.fold();
    const auto got = model.forward(images);
    // Rounding of 30 layers: double 1e-12, float 1e-5, relative to the largest value.
    const double bound = type == torch::kDouble ? 1e-12 : 1e-5;
    for (const auto& [a, b] :
         {std::pair{got.locations, wanted.locations}, std::pair{got.confidences, wanted.confidences}}) {
      const double largest = b.abs().max().item<double>();
      EXPECT_GT(largest, .01);
      EXPECT_LE((a - b).abs().max().item<double>(), bound * largest);
    }
    EXPECT_FALSE(got.locations.equal(wanted.locations));  // it was folded
    model.unfold();
    EXPECT_TRUE(model.forward(images).locations.equal(wanted.locations));
  }
}

}  // namespace
}  // namespace ssd
