// Golden SGD steps of ResNet-18: tests/data/golden/README.txt, section 7. One rank runs the four single-rank
// groups, two ranks the data-parallel group.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <map>

#include "model/model_tensors.hpp"
#include "support/golden_batch.hpp"
#include "support/world.hpp"
#include "train/train_step.hpp"

namespace ssd {
namespace {

using test::GoldenFile;

const GoldenFile& golden() {
  static const GoldenFile file(SSD_TEST_DATA "/golden/train_resnet18.h5");
  return file;
}

// Fixed-length strings of a dataset.
std::vector<std::string> names_of(const std::string& dataset) {
  const hid_t file = H5Fopen(SSD_TEST_DATA "/golden/train_resnet18.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t id = H5Dopen2(file, dataset.c_str(), H5P_DEFAULT);
  const hid_t type = H5Dget_type(id), space = H5Dget_space(id);
  const auto length = H5Tget_size(type);
  const auto count = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space));
  std::vector<char> text(length * count);
  H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name(text.data() + i * length, length);
    names.push_back(name.substr(0, name.find('\0')));
  }
  H5Sclose(space);
  H5Tclose(type);
  H5Dclose(id);
  H5Fclose(file);
  return names;
}

struct StepsCase {
  const char* group;
  torch::ScalarType type;
  bool channels_last;  // with it BatchNorm and ReLU are one operation (model/batch_norm_relu.hpp)
};

// Tolerances of README, section 7.
struct Tolerance {
  double loss_early = 5e-5, loss_middle = 5e-5, loss_late = 5e-5;
  double moved_relative = .02, moved_absolute = 5e-7, moved_median = 1e-3;
};

Tolerance tolerance_of(const StepsCase& run) {
  const std::string group = run.group;
  const bool is_high = group == "high_lr";
  if (run.type == torch::kDouble) {
    const double loss = is_high ? 1e-6 : 1e-10, moved = is_high ? 1e-4 : 1e-8;
    return {loss, loss, loss, moved, 0, moved};
  }
  if (is_high) return {1e-5, 2e-3, .05, .1, 0, .1};
  if (group == "decay_probe") return {.moved_relative = .03, .moved_absolute = 5e-6, .moved_median = .03};
  if (group == "two_ranks") return {1e-5, 1e-5, 1e-5, .02, 5e-7, 1e-3};
  return {};
}

class GoldenSteps {
 public:
  GoldenSteps(const StepsCase& run, const MpiComm& world)
      : run_(run), world_(world), group_(run.group), suffix_(run.type == torch::kDouble ? "_f64" : "_f32") {
    test::fill_by_rule(model_);
    for (const auto& [name, tensor, is_parameter, is_norm] : model_tensors(model_))
      start_[name] = tensor.detach().to(torch::kDouble).clone();
    for (int b = 0; b < 2; ++b) batches_.push_back(test::golden_batch(b, run.type));
  }

  void run() {
    ParameterArena arena(model_, {run_.type, run_.channels_last});
    std::unique_ptr<GradientCommunicator> communicator;
    if (world_.world_size() > 1) communicator = make_mpi_gradient_communicator(world_);
    ReducerOptions reducer_options;
    reducer_options.wire_type = run_.type == torch::kDouble ? WireType::float64 : WireType::float32;
    GradientReducer reducer(arena, communicator.get(), reducer_options);
    LossScaler scaler(LossScaling::none, torch::kCPU);
    SgdOptions options;
    options.weight_decay = golden().attribute<double>(group_, "weight_decay");
    TrainStep step(model_, arena, reducer, scaler, options);
    model_.train();
    const auto losses = losses_wanted();
    const auto rates = rates_of_steps();
    const auto tolerance = tolerance_of(run_);
    const auto ranks = static_cast<std::size_t>(world_.world_size());
    for (std::size_t s = 0; s < rates.size(); ++s) {
      const auto& batch = batches_[(s + static_cast<std::size_t>(world_.rank())) % 2];
      const double loss = step.run(images_of(batch), batch.targets, rates[s]).item<double>();
      const double wanted = losses[s * ranks + static_cast<std::size_t>(world_.rank())];
      const double bound =
          s <= 2 ? tolerance.loss_early : (s <= 5 ? tolerance.loss_middle : tolerance.loss_late);
      EXPECT_NEAR(loss, wanted, bound * wanted) << group_ << " step " << s;
      if (s == 0) check_first_gradient(arena, reducer);
      const auto after = fmt::format("{}/after_step_{}", group_, s + 1);
      if (golden().has(after)) check_moves(after, s + 1, arena, tolerance);
    }
    check_equal_on_all_ranks(arena);
  }

 private:
  torch::Tensor images_of(const test::GoldenBatch& batch) const {
    return run_.channels_last ? batch.images.contiguous(torch::MemoryFormat::ChannelsLast) : batch.images;
  }

  // two_ranks has one rate for its three steps.
  std::vector<double> rates_of_steps() const {
    if (golden().has(group_ + "/lr")) return golden().read<double>(group_ + "/lr");
    return std::vector<double>(3, golden().attribute<double>(group_, "lr0"));
  }

  std::vector<double> losses_wanted() const {
    if (run_.type == torch::kDouble) return golden().read<double>(group_ + "/loss_f64");
    const auto values = golden().read<float>(group_ + "/loss_f32");
    return {values.begin(), values.end()};
  }

  void check_first_gradient(const ParameterArena& arena, const GradientReducer& reducer) const {
    static const auto names = names_of("constant_lr/names");
    const auto wanted = golden().read<double>(group_ + "/gradient_step_1/norm" + suffix_);
    for (std::size_t b = 0; b < arena.blocks().size(); ++b) {
      for (const auto& entry : arena.blocks()[b].entries) {
        const auto at =
            static_cast<std::size_t>(std::find(names.begin(), names.end(), entry.name) - names.begin());
        ASSERT_LT(at, names.size()) << entry.name;
        const auto gradient = reducer.averaged(b).slice(0, entry.offset, entry.offset + entry.count);
        const double norm = gradient.to(torch::kDouble).norm().item<double>();
        // README: 5e-3 relative in float32 (measured 1e-3).
        EXPECT_NEAR(norm, wanted[at], wanted[at] * (run_.type == torch::kDouble ? 1e-8 : 5e-3)) << entry.name;
      }
    }
  }

  void check_moves(const std::string& after, std::size_t steps, const ParameterArena& arena,
                   const Tolerance& tolerance) {
    static const auto names = names_of("constant_lr/names");
    const auto moved = golden().read<double>(after + "/moved" + suffix_);
    std::map<std::string, torch::Tensor> now;
    for (const auto& block : arena.blocks()) {
      for (const auto& entry : block.entries)
        now[entry.name] = arena.master_of(block, entry).to(torch::kDouble);
    }
    const bool is_first_of_high = group_ == "high_lr" && steps == 1 && run_.type == torch::kFloat;
    std::vector<double> relative;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const double got = (now.at(names[i]) - start_.at(names[i])).norm().item<double>();
      const double bound = is_first_of_high ? .01 : tolerance.moved_relative;
      if (group_ == "high_lr" && run_.type == torch::kFloat && steps > 6) continue;  // README gives no bound
      EXPECT_NEAR(got, moved[i], bound * moved[i] + tolerance.moved_absolute) << after << " " << names[i];
      if (moved[i] > 0) relative.push_back(std::abs(got - moved[i]) / moved[i]);
    }
    if (!relative.empty()) {
      std::nth_element(relative.begin(), relative.begin() + static_cast<long>(relative.size() / 2),
                       relative.end());
      EXPECT_LE(relative[relative.size() / 2], tolerance.moved_median) << after;
    }
    check_buffers(after);
  }

  void check_buffers(const std::string& after) {
    // README gives bounds for the moves alone: statistics follow the weights, so in the run that drifts they
    // get theirs.
    if (group_ == "high_lr" && run_.type == torch::kFloat) return;
    const double tolerance = run_.type == torch::kDouble ? (group_ == "high_lr" ? 1e-4 : 1e-8) : 1e-3;
    static const auto names = names_of("constant_lr/buffer_names");
    const auto wanted = golden().read<double>(after + "/buffer_norm" + suffix_);
    std::map<std::string, torch::Tensor> now;
    for (const auto& [name, tensor, is_parameter, is_norm] : model_tensors(model_)) now[name] = tensor;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const double norm = wanted[static_cast<std::size_t>(world_.rank()) * names.size() + i];
      // README: 1e-3 relative in float32 (measured 2.4e-4).
      EXPECT_NEAR(now.at(names[i]).to(torch::kDouble).norm().item<double>(), norm, norm * tolerance)
          << after << " " << names[i];
    }
  }

  void check_equal_on_all_ranks(const ParameterArena& arena) const {
    for (const auto& block : arena.blocks()) {
      auto first = block.master.clone();
      world_.broadcast_in_place({static_cast<std::byte*>(first.data_ptr()), first.nbytes()});
      EXPECT_TRUE(first.equal(block.master)) << "rank " << world_.rank();
    }
  }

  StepsCase run_;
  const MpiComm& world_;
  std::string group_;
  std::string suffix_;
  Ssd300 model_{Backbone::resnet18, 81};
  std::map<std::string, torch::Tensor> start_;
  std::vector<test::GoldenBatch> batches_;
};

class GoldenStepsTest : public testing::TestWithParam<StepsCase> {};

TEST_P(GoldenStepsTest, equal_the_reference_run) {
  const auto world = test::copy_of_world();
  const bool needs_two = std::string(GetParam().group) == "two_ranks";
  if (needs_two != (world.world_size() == 2))
    GTEST_SKIP() << "for " << (needs_two ? "two ranks" : "one rank");
  torch::set_num_threads(1);
  GoldenSteps(GetParam(), world).run();
}

INSTANTIATE_TEST_SUITE_P(
    Groups, GoldenStepsTest,
    testing::Values(StepsCase{"constant_lr", torch::kFloat, false},
                    StepsCase{"constant_lr", torch::kDouble, true}, StepsCase{"warmup", torch::kFloat, true},
                    StepsCase{"warmup", torch::kDouble, false}, StepsCase{"high_lr", torch::kFloat, false},
                    StepsCase{"high_lr", torch::kDouble, true}, StepsCase{"decay_probe", torch::kFloat, true},
                    StepsCase{"decay_probe", torch::kDouble, false},
                    StepsCase{"two_ranks", torch::kFloat, false},
                    StepsCase{"two_ranks", torch::kDouble, true}),
    [](const auto& item) {
      return fmt::format("{}_{}{}", item.param.group,
                         item.param.type == torch::kDouble ? "float64" : "float32",
                         item.param.channels_last ? "_channels_last" : "");
    });

}  // namespace
}  // namespace ssd
