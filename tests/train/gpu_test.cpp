// What only a GPU can show: that the device gives what the CPU gives. Skipped where there is none (label
// gpu).
#include <gtest/gtest.h>

#include "model/detection_decode.hpp"
#include "support/files.hpp"
#include "support/golden_batch.hpp"
#include "support/run_program.hpp"
#include "train/batch_feed.hpp"
#include "train/train_step.hpp"

namespace ssd {
namespace {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (visible_device_count() == 0) GTEST_SKIP() << "no GPU is visible";
    at::globalContext().setAllowTF32CuBLAS(false);
    at::globalContext().setAllowTF32CuDNN(false);
  }
  const torch::Device gpu{torch::kCUDA, 0};
};

ComputePlan plan_for(torch::Device device, torch::ScalarType type) {
  ComputePlan plan;
  plan.device = device;
  plan.arena = {type, true};
  return plan;
}

double largest_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a.cpu().to(torch::kDouble) - b.cpu().to(torch::kDouble)).abs().max().item<double>();
}

TEST_F(GpuTest, the_feed_brings_the_batches_of_the_cpu_in_their_order) {
  const TemporaryFolder folder;
  const auto packed =
      run_program({SSD_BIN_DIR "/ssd_preprocess", SSD_TEST_DATA "/coco_free", folder.path().string()});
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  const auto set = ShardSet::open(folder.path(), Split::train);
  const auto on_cpu = plan_for(torch::kCPU, torch::kFloat), on_gpu = plan_for(gpu, torch::kFloat);
  TrainLoaderOptions options;
  options.share = {3, 0, 1};
  TrainLoader cpu_loader(set, options);
  options.pipeline.allocate = pixel_allocator(on_gpu);
  TrainLoader gpu_loader(set, options);
  BatchFeed cpu_feed(cpu_loader, on_cpu), gpu_feed(gpu_loader, on_gpu);
  for (int i = 0; i < 10; ++i) {
    const auto wanted = cpu_feed.next(), got = gpu_feed.next();
    gpu_feed.prefetch();
    ASSERT_TRUE(got.images.is_cuda());
    EXPECT_EQ(got.epoch, wanted.epoch);
    EXPECT_LE(largest_difference(got.images, wanted.images),
              1e-6);  // one multiplication and addition, contracted or not
    EXPECT_TRUE(got.targets.labels.cpu().equal(wanted.targets.labels));
    EXPECT_LE(largest_difference(got.targets.offsets, wanted.targets.offsets),
              1e-4);  // log and division of the device
  }
}

TEST_F(GpuTest, twenty_steps_have_the_losses_of_the_cpu) {
  std::vector<std::vector<double>> losses;
  for (const auto device : {torch::Device(torch::kCPU), gpu}) {
    Ssd300 model(Backbone::resnet18, 81);
    test::fill_by_rule(model);
    model.to(device);
    model.train();
    ParameterArena arena(model, {torch::kFloat, true});
    GradientReducer reducer(arena, nullptr, {});
    LossScaler scaler(LossScaling::none, device);
    TrainStep step(model, arena, reducer, scaler, {});
    auto& own = losses.emplace_back();
    for (int i = 0; i < 20; ++i) {
      const auto batch = test::golden_batch(i % 2, torch::kFloat);
      const auto images = batch.images.to(device).contiguous(torch::MemoryFormat::ChannelsLast);
      const LossTargets targets{batch.targets.labels.to(device), batch.targets.offsets.to(device)};
      own.push_back(step.run(images, targets, 8.125e-5).item<double>());
    }
  }
  // The reference's own runs drift by 5e-5 in 12 steps between machines: tests/data/golden/README.txt,
  // section 7.
  for (std::size_t i = 0; i < 20; ++i)
    EXPECT_NEAR(losses[1][i], losses[0][i], 1e-3 * losses[0][i]) << "step " << i;
}

TEST_F(GpuTest, an_overflow_in_half_skips_the_step_without_asking_the_host) {
  Ssd300 model(Backbone::resnet18, 81);
  initialise_weights(model, 1);
  model.to(gpu);
  model.train();
  ParameterArena arena(model, {torch::kHalf, true});
  GradientReducer reducer(arena, nullptr, {});
  LossScaler scaler(LossScaling::dynamic, gpu);
  TrainStep step(model, arena, reducer, scaler, {});
  const auto batch = test::golden_batch(0, torch::kFloat);
  auto images = batch.images.to(gpu, torch::kHalf).contiguous(torch::MemoryFormat::ChannelsLast);
  images[0][0][0][0] = std::numeric_limits<float>::infinity();
  const auto before = arena.blocks()[0].master.clone();
  step.run(images, {batch.targets.labels.to(gpu), batch.targets.offsets.to(gpu)}, 1e-3);
  EXPECT_TRUE(arena.blocks()[0].master.equal(before));
  EXPECT_EQ(scaler.state().scale, 32768);
  EXPECT_EQ(scaler.state().skipped_steps, 1);
}

TEST_F(GpuTest, detections_are_those_of_the_cpu) {
  torch::manual_seed(2);
  const auto locations = torch::randn({2, 4, 8732}) * .5, confidences = torch::randn({2, 81, 8732}) * 2;
  const auto defaults = default_boxes_tensor();
  const auto wanted = decode_detections(locations, confidences, defaults);
  const auto got = decode_detections(locations.to(gpu), confidences.to(gpu), defaults.to(gpu));
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    ASSERT_EQ(got[n].labels, wanted[n].labels);
    for (std::size_t i = 0; i < wanted[n].scores.size(); ++i)
      EXPECT_NEAR(got[n].scores[i], wanted[n].scores[i], 1e-5);
  }
}

}  // namespace
}  // namespace ssd
