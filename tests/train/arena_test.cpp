#include <gtest/gtest.h>

#include "model/model_tensors.hpp"
#include "train/parameter_arena.hpp"
#include "train/sgd.hpp"

namespace ssd {
namespace {

struct ArenaCase {
  torch::ScalarType type;
  bool channels_last;
};

class ArenaTest : public testing::TestWithParam<ArenaCase> {};

TEST_P(ArenaTest, keeps_every_value_and_makes_parameters_and_gradients_views_that_do_not_overlap) {
  const auto [type, channels_last] = GetParam();
  Ssd300 model(Backbone::resnet18, 4), original(Backbone::resnet18, 4);
  initialise_weights(model, 3);
  initialise_weights(original, 3);
  ParameterArena arena(model, {type, channels_last});
  const auto before = model_tensors(original), after = model_tensors(model);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool is_norm = before[i].name.find(".bn") != std::string::npos;
    EXPECT_TRUE(after[i]
                    .tensor.to(torch::kFloat)
                    .equal(before[i].tensor.to(after[i].tensor.scalar_type()).to(torch::kFloat)))
        << before[i].name;
    if (is_norm && before[i].tensor.is_floating_point()) {
      EXPECT_EQ(after[i].tensor.scalar_type(), type == torch::kDouble ? torch::kDouble : torch::kFloat);
    }
  }
  std::int64_t total = 0;
  for (auto& block : arena.blocks()) {
    std::int64_t end = 0;
    for (const auto& entry : block.entries) {
      EXPECT_GE(entry.offset, end) << entry.name;
      end = entry.offset + entry.count;
      total += entry.count;
      EXPECT_EQ(entry.parameter.storage().data(), block.weights.storage().data());
      EXPECT_EQ(entry.parameter.grad().storage().data(), block.gradients.storage().data());
      EXPECT_EQ(entry.has_weight_decay, entry.offset < block.decayed_count) << entry.name;
      EXPECT_EQ(entry.has_weight_decay, entry.parameter.dim() > 1);
      EXPECT_TRUE(arena.master_of(block, entry).to(type).equal(entry.parameter.to(type)));
    }
    EXPECT_LE(end, block.weights.numel());
  }
  std::int64_t wanted = 0;
  for (const auto& tensor : before) wanted += tensor.is_parameter ? tensor.tensor.numel() : 0;
  EXPECT_EQ(total, wanted);
}

TEST_P(ArenaTest, backward_adds_into_the_flat_gradients_in_place) {
  const auto [type, channels_last] = GetParam();
  Ssd300 model(Backbone::resnet18, 4);
  ParameterArena arena(model, {type, channels_last});
  const auto* before = arena.blocks()[0].gradients.data_ptr();
  auto images = torch::rand({2, 3, 300, 300}).to(type);
  if (channels_last) images = images.contiguous(at::MemoryFormat::ChannelsLast);
  model.forward(images).confidences.to(torch::kFloat).square().mean().backward();
  for (auto& block : arena.blocks()) EXPECT_GT(block.gradients.abs().max().item<double>(), 0);
  EXPECT_EQ(arena.blocks()[0].gradients.data_ptr(), before);
  for (auto& block : arena.blocks()) {
    for (const auto& entry : block.entries) {
      ASSERT_EQ(entry.parameter.grad().storage().data(), block.gradients.storage().data()) << entry.name;
    }
  }
  arena.zero_gradients();
  for (auto& block : arena.blocks()) EXPECT_EQ(block.gradients.abs().max().item<double>(), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, ArenaTest,
                         testing::Values(ArenaCase{torch::kFloat, false}, ArenaCase{torch::kFloat, true},
                                         ArenaCase{torch::kDouble, false}, ArenaCase{torch::kBFloat16, true}),
                         [](const auto& item) {
                           return std::string(c10::toString(item.param.type)) +
                                  (item.param.channels_last ? "_channels_last" : "");
                         });

ArenaBlock random_block(torch::ScalarType compute, torch::ScalarType master) {
  ArenaBlock block;
  block.decayed_count = 5000;
  block.master = torch::randn({10001}, master);
  block.momentum = torch::randn({10001}, master);
  block.weights = compute == master ? block.master : block.master.to(compute);
  block.gradients = torch::randn({10001}, compute);
  return block;
}

ArenaBlock copy_of(const ArenaBlock& block) {
  ArenaBlock copy = block;
  copy.master = block.master.clone();
  copy.momentum = block.momentum.clone();
  copy.weights = block.weights.is_same(block.master) ? copy.master : block.weights.clone();
  return copy;
}

TEST(SgdUpdate, the_fused_loop_and_the_operations_agree_to_rounding) {
  torch::manual_seed(1);
  for (const auto& [compute, master, wire] : {std::tuple{torch::kFloat, torch::kFloat, torch::kFloat},
                                              std::tuple{torch::kFloat, torch::kFloat, torch::kHalf},
                                              std::tuple{torch::kBFloat16, torch::kFloat, torch::kBFloat16},
                                              std::tuple{torch::kBFloat16, torch::kFloat, torch::kHalf},
                                              std::tuple{torch::kDouble, torch::kDouble, torch::kDouble}}) {
    auto fused = random_block(compute, master);
    auto plain = copy_of(fused);
    const auto gradients = (1024 * fused.gradients).to(wire);
    const SgdStep step{.1, torch::full({}, .1, torch::kDouble), torch::full({1}, 1 / 1024.F),
                       torch::zeros({1})};
    sgd_update(fused, gradients, {}, step);
    sgd_update_by_operations(plain, gradients, {}, step);
    // Values of magnitude 4: a few units of float32's last place.
    const double tolerance = master == torch::kDouble ? 1e-15 * 8 : 1e-6;
    EXPECT_LE((fused.master - plain.master).abs().max().item<double>(), tolerance);
    EXPECT_LE((fused.momentum - plain.momentum).abs().max().item<double>(), tolerance);
    EXPECT_TRUE(fused.weights.equal(fused.master.to(compute)));
    EXPECT_TRUE(plain.weights.equal(plain.master.to(compute)));
  }
}

TEST(SgdUpdate, an_overflow_leaves_weights_and_momentum_as_they_are) {
  for (auto* update : {&sgd_update, &sgd_update_by_operations}) {
    auto block = random_block(torch::kBFloat16, torch::kFloat);
    const auto before = copy_of(block);
    auto found = torch::zeros({1});
    block.gradients[17] = std::numeric_limits<float>::infinity();
    detect_overflow(block.gradients, found);
    EXPECT_EQ(found.item<float>(), 1);
    update(block, block.gradients, {}, {.1, torch::full({}, .1, torch::kDouble), torch::ones({1}), found});
    EXPECT_TRUE(block.master.equal(before.master));
    EXPECT_TRUE(block.momentum.equal(before.momentum));
    EXPECT_TRUE(block.weights.equal(before.weights));
  }
}

TEST(DetectOverflow, finds_infinity_and_nan_in_every_dtype_and_nothing_else) {
  for (const auto type : {torch::kFloat, torch::kHalf, torch::kBFloat16, torch::kDouble}) {
    for (const double value :
         {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
          std::numeric_limits<double>::quiet_NaN()}) {
      auto gradients = torch::zeros({100}, type);
      auto found = torch::zeros({1});
      gradients[50] = 60000;
      detect_overflow(gradients, found);
      EXPECT_EQ(found.item<float>(), 0);
      gradients[99] = value;
      detect_overflow(gradients, found);
      EXPECT_EQ(found.item<float>(), 1);
    }
  }
}

}  // namespace
}  // namespace ssd
