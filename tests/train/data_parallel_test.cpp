// Steps of several ranks together: what they average, when they skip, and that they stay equal.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <limits>

#include "comm/agreement.hpp"
#include "support/world.hpp"
#include "train/train_step.hpp"
#include "train/weights_check.hpp"

namespace ssd {
namespace {

constexpr int kClasses = 6;
constexpr int kGlobalBatch = 4;
constexpr int kDefaultBoxes = 8732;
constexpr int kSteps = 2;
constexpr double kScale = 1024;  // of the loss; the gradients of this network fit a half with it

struct RandomBatch {
  torch::Tensor images;  // (N, 3, 300, 300)
  LossTargets targets;
};

// The same batch on every rank; 12 matched boxes in each image.
RandomBatch random_batch(int step, torch::ScalarType type) {
  torch::manual_seed(100 + step);
  const auto images = torch::randn({kGlobalBatch, 3, 300, 300}).to(type);
  auto labels = torch::zeros({kGlobalBatch, kDefaultBoxes}, torch::kLong);
  auto offsets = torch::zeros({kGlobalBatch, 4, kDefaultBoxes});
  for (int n = 0; n < kGlobalBatch; ++n) {
    for (const auto place : {5, 100, 1444, 3000, 5776, 6001, 7000, 7942, 8200, 8542, 8700, 8731}) {
      labels[n][place] = 1 + (place + n) % (kClasses - 1);
      offsets[n].select(1, place).normal_(0, .5);
    }
  }
  return {images.contiguous(torch::MemoryFormat::ChannelsLast), {labels, offsets}};
}

RandomBatch part_of(const RandomBatch& batch, int part, int parts) {
  const std::int64_t size = kGlobalBatch / parts;
  const auto cut = [&](const torch::Tensor& rows) { return rows.narrow(0, part * size, size); };
  return {cut(batch.images), {cut(batch.targets.labels), cut(batch.targets.offsets)}};
}

// A network with its optimizer, alone or with the others.
class SmallRun {
 public:
  SmallRun(const MpiComm* world, torch::ScalarType compute_type, WireType wire_type, LossScaling scaling)
      : compute_type_(compute_type) {
    initialise_weights(model_, 11);
    // With the statistics of each rank's own images, the number of ranks would matter: here they are fixed.
    model_.eval();
    arena_ = std::make_unique<ParameterArena>(model_, ArenaOptions{compute_type, true});
    if (world != nullptr && world->world_size() > 1) communicator_ = make_mpi_gradient_communicator(*world);
    ReducerOptions options;
    options.wire_type = wire_type;
    reducer_ = std::make_unique<GradientReducer>(*arena_, communicator_.get(), options);
    scaler_ = std::make_unique<LossScaler>(scaling, torch::kCPU);
    scaler_->set_state({kScale, 0, 0});
    step_ = std::make_unique<TrainStep>(model_, *arena_, *reducer_, *scaler_, SgdOptions{});
  }

  double step(const RandomBatch& batch) {
    return step_->run(batch.images, batch.targets, 1e-3).item<double>();
  }
  ParameterArena& arena() { return *arena_; }
  LossScalerState scaler() const { return scaler_->state(); }
  torch::ScalarType compute_type() const { return compute_type_; }

 private:
  torch::ScalarType compute_type_;
  Ssd300 model_{Backbone::resnet18, kClasses};
  std::unique_ptr<ParameterArena> arena_;
  std::unique_ptr<GradientCommunicator> communicator_;
  std::unique_ptr<GradientReducer> reducer_;
  std::unique_ptr<LossScaler> scaler_;
  std::unique_ptr<TrainStep> step_;
};

class DataParallelTest : public testing::Test {
 protected:
  DataParallelTest() {
    world = test::copy_of_world();
    torch::set_num_threads(1);
  }

  double mean_over_ranks(double value) const {
    return world.reduce_all(value, ReduceOperation::sum) / world.world_size();
  }

  // One rank alone with the whole batches, in float32.
  static const std::vector<double>& losses_of_one_rank() {
    static const auto losses = [] {
      SmallRun alone(nullptr, torch::kFloat, WireType::float32, LossScaling::none);
      std::vector<double> result;
      for (int step = 0; step < kSteps; ++step)
        result.push_back(alone.step(random_batch(step, torch::kFloat)));
      return result;
    }();
    return losses;
  }

  // The losses of all ranks together are those of one.
  void expect_equal_losses(torch::ScalarType compute_type, WireType wire_type, LossScaling scaling,
                           double bound) {
    SmallRun together(&world, compute_type, wire_type, scaling);
    for (int step = 0; step < kSteps; ++step) {
      auto own = part_of(random_batch(step, torch::kFloat), world.rank(), world.world_size());
      own.images = own.images.to(compute_type);
      const double wanted = losses_of_one_rank()[static_cast<std::size_t>(step)];
      const double got = mean_over_ranks(together.step(own));
      EXPECT_NEAR(got, wanted, bound * wanted) << "step " << step;
    }
    EXPECT_NO_THROW(expect_same_weights(together.arena(), world, "after the test"));
  }

  MpiComm world;
};

// The mean of the ranks' gradients is the whole batch's: the losses of the steps after it agree. Bounds,
// relative:
// - float32: a loss is a sum of 8732 boxes, one after another u sqrt(8732 / 6) = 2.3e-6 of it on average with
//   u = 2^-24 (support/rounding_noise.hpp), in both runs; errors before it are of single boxes and average
//   out in it. Four times the two together.
// - gradients as halves: rounded to 2^-11 of each, before and after each of up to 3 additions, together less
// than
//   2^-8 of an update, which moves the loss by less than half of itself.
// - BF16: 2^-9 of the input, weights and result of each of 20 layers, sqrt(3 * 20) 2^-9 = 1.5e-2 of a
// prediction.
//   Twice that.
TEST_F(DataParallelTest, in_float32_the_losses_are_those_of_one_rank) {
  expect_equal_losses(torch::kFloat, WireType::float32, LossScaling::none, 2e-5);
}
TEST_F(DataParallelTest, with_gradients_in_half_the_losses_are_those_of_one_rank) {
  expect_equal_losses(torch::kFloat, WireType::float16, LossScaling::dynamic, 2e-3);
}
TEST_F(DataParallelTest, in_bfloat16_the_losses_are_those_of_one_rank_in_float32) {
  expect_equal_losses(torch::kBFloat16, WireType::float16, LossScaling::dynamic, 3e-2);
}

TEST_F(DataParallelTest, T5_17_an_overflow_on_one_rank_skips_the_step_everywhere_and_halves_the_scale_once) {
  SmallRun run(&world, torch::kFloat, WireType::float16, LossScaling::dynamic);
  const auto whole = random_batch(0, torch::kFloat);
  auto own = part_of(whole, world.rank(), world.world_size());
  const auto before = digest_of_weights(run.arena());
  if (world.rank() == world.world_size() - 1) {
    own.images = own.images.clone();
    own.images[0][0][150][150] = std::numeric_limits<float>::infinity();
  }
  run.step(own);
  EXPECT_EQ(digest_of_weights(run.arena()), before);
  EXPECT_EQ(run.scaler().scale, kScale / 2);
  EXPECT_EQ(run.scaler().skipped_steps, 1);
  EXPECT_EQ(run.scaler().good_steps, 0);

  // The next step is a good one: weights move, alike on all ranks.
  run.step(part_of(whole, world.rank(), world.world_size()));
  EXPECT_EQ(run.scaler().good_steps, 1);
  EXPECT_EQ(run.scaler().scale, kScale / 2);
  EXPECT_NE(digest_of_weights(run.arena()), before);
  EXPECT_NO_THROW(expect_same_weights(run.arena(), world, "after the test"));
}

TEST_F(DataParallelTest, ranks_that_differ_in_one_bit_are_found) {
  SmallRun run(&world, torch::kFloat, WireType::float32, LossScaling::none);
  EXPECT_NO_THROW(expect_same_weights(run.arena(), world, "at start"));
  if (world.world_size() == 1) return;
  if (world.rank() == world.world_size() - 1) {
    auto weight = run.arena().blocks()[0].master.narrow(0, 12345, 1);
    weight.copy_(torch::nextafter(weight, torch::ones(1)));
  }
  EXPECT_THROW(expect_same_weights(run.arena(), world, "after the test"), AgreedFailure);
}

}  // namespace
}  // namespace ssd
