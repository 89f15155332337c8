#include "comm_bench/gradient_size.hpp"

#include <gtest/gtest.h>

#include "train/parameter_arena.hpp"

namespace ssd {
namespace {

std::size_t values_of(const ArenaBlock& block) {
  std::size_t count = 0;
  for (const auto& entry : block.entries) count += static_cast<std::size_t>(entry.count);
  return count;
}

TEST(GradientSizes, are_those_of_the_arena_of_every_backbone) {
  ASSERT_EQ(kGradientSizes.size(), kBackbones.size());
  for (std::size_t i = 0; i < kBackbones.size(); ++i) {
    const auto& size = kGradientSizes[i];
    Ssd300 model(kBackbones[i], kGradientClasses);
    const ParameterArena arena(model, {});
    const auto &convolutions = arena.blocks().at(0), &norms = arena.blocks().at(1);
    EXPECT_STREQ(size.backbone, backbone_name(kBackbones[i]));
    EXPECT_EQ(size.convolution_count, values_of(convolutions)) << size.backbone;
    EXPECT_EQ(size.batch_norm_count, values_of(norms)) << size.backbone;
    // What lies between tensors, which travels too, is less than a thousandth.
    const auto travelling = convolutions.gradients.numel() + norms.gradients.numel();
    EXPECT_LT(static_cast<double>(travelling),
              1.001 * static_cast<double>(size.convolution_count + size.batch_norm_count));
  }
}

}  // namespace
}  // namespace ssd
