// Golden SGD steps of ResNet-18: tests/data/golden/README.txt, section 7. One rank runs the four single-rank
// groups, two ranks the data-parallel group.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <map>

#include "model/model_tensors.hpp"
#include "support/golden_batch.hpp"
#include "support/rounding_noise.hpp"
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

using TensorMap = std::map<std::string, torch::Tensor>;

// What a run leaves, in float64.
struct Course {
  std::vector<double> losses;              // of this rank, step by step
  TensorMap gradients;                     // of the first step, averaged
  std::map<std::size_t, TensorMap> after;  // masters and buffers after as many steps
};

constexpr std::size_t kAllSteps = 12;

class GoldenSteps {
 public:
  GoldenSteps(const StepsCase& run, const MpiComm& world) : run_(run), world_(world), group_(run.group) {
    test::fill_by_rule(model_);
    for (const auto& [name, tensor, is_parameter, is_norm] : model_tensors(model_))
      start_[name] = tensor.detach().to(torch::kDouble).clone();
    for (int b = 0; b < 2; ++b) batches_.push_back(test::golden_batch(b, run.type));
  }

  Course take(std::size_t most_steps = kAllSteps) { return take_steps(most_steps, false); }
  // In float64, with what stays from step to step rounded to float32.
  Course take_rounded(std::size_t most_steps) { return take_steps(most_steps, true); }

  // Of a run in float64. README, section 7.
  void check_against_golden(const Course& course) const {
    const bool is_high = group_ == "high_lr";
    const double loss_bound = is_high ? 1e-6 : 1e-10, moved_bound = is_high ? 1e-4 : 1e-8;
    const auto losses = golden().read<double>(group_ + "/loss_f64");
    const auto ranks = static_cast<std::size_t>(world_.world_size());
    for (std::size_t s = 0; s < course.losses.size(); ++s) {
      const double wanted = losses[s * ranks + static_cast<std::size_t>(world_.rank())];
      EXPECT_NEAR(course.losses[s], wanted, loss_bound * wanted) << group_ << " step " << s;
    }
    const auto names = names_of("constant_lr/names"), buffer_names = names_of("constant_lr/buffer_names");
    const auto norms = golden().read<double>(group_ + "/gradient_step_1/norm_f64");
    for (std::size_t i = 0; i < names.size(); ++i)
      EXPECT_NEAR(norm_of(course.gradients.at(names[i])), norms[i], norms[i] * 1e-8) << names[i];
    for (const auto& [steps, tensors] : course.after) {
      const auto after = after_steps(steps);
      const auto moved = golden().read<double>(after + "/moved_f64");
      for (std::size_t i = 0; i < names.size(); ++i) {
        EXPECT_NEAR(norm_of(tensors.at(names[i]) - start_.at(names[i])), moved[i], moved_bound * moved[i])
            << after << " " << names[i];
      }
      const auto buffers = golden().read<double>(after + "/buffer_norm_f64");
      for (std::size_t i = 0; i < buffer_names.size(); ++i) {
        const double wanted = buffers[static_cast<std::size_t>(world_.rank()) * buffer_names.size() + i];
        EXPECT_NEAR(norm_of(tensors.at(buffer_names[i])), wanted, wanted * moved_bound)
            << after << " " << buffer_names[i];
      }
    }
  }

 private:
  Course take_steps(std::size_t most_steps, bool rounds) {
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
    const auto rates = rates_of_steps();
    Course course;
    for (std::size_t s = 0; s < std::min(rates.size(), most_steps); ++s) {
      const auto& batch = batches_[(s + static_cast<std::size_t>(world_.rank())) % 2];
      course.losses.push_back(step.run(images_of(batch), batch.targets, rates[s]).item<double>());
      if (rounds) round_to_float(arena);
      if (s == 0) course.gradients = gradients_of(arena, reducer);
      if (golden().has(after_steps(s + 1))) course.after[s + 1] = tensors_of(arena);
    }
    check_equal_on_all_ranks(arena);
    return course;
  }

  static double norm_of(const torch::Tensor& tensor) { return tensor.norm().item<double>(); }
  std::string after_steps(std::size_t steps) const { return fmt::format("{}/after_step_{}", group_, steps); }

  torch::Tensor images_of(const test::GoldenBatch& batch) const {
    return run_.channels_last ? batch.images.contiguous(torch::MemoryFormat::ChannelsLast) : batch.images;
  }

  // two_ranks has one rate for its three steps.
  std::vector<double> rates_of_steps() const {
    if (golden().has(group_ + "/lr")) return golden().read<double>(group_ + "/lr");
    return std::vector<double>(3, golden().attribute<double>(group_, "lr0"));
  }

  void round_to_float(ParameterArena& arena) {
    const auto round = [](torch::Tensor numbers) { numbers.copy_(numbers.to(torch::kFloat)); };
    for (auto& block : arena.blocks()) {
      round(block.master);
      round(block.momentum);
    }
    for (const auto& [name, tensor, is_parameter, is_norm] : model_tensors(model_)) {
      if (!is_parameter) round(tensor);
    }
  }

  static TensorMap gradients_of(const ParameterArena& arena, const GradientReducer& reducer) {
    TensorMap gradients;
    for (std::size_t b = 0; b < arena.blocks().size(); ++b) {
      for (const auto& entry : arena.blocks()[b].entries) {
        gradients[entry.name] = reducer.averaged(b)
                                    .slice(0, entry.offset, entry.offset + entry.count)
                                    .to(torch::kDouble, false, true);
      }
    }
    return gradients;
  }

  TensorMap tensors_of(const ParameterArena& arena) {
    TensorMap tensors;
    for (const auto& [name, tensor, is_parameter, is_norm] : model_tensors(model_)) {
      if (!is_parameter) tensors[name] = tensor.to(torch::kDouble, false, true);
    }
    for (const auto& block : arena.blocks()) {
      for (const auto& entry : block.entries)
        tensors[entry.name] = arena.master_of(block, entry).to(torch::kDouble, false, true);
    }
    return tensors;
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
  Ssd300 model_{Backbone::resnet18, 81};
  TensorMap start_;
  std::vector<test::GoldenBatch> batches_;
};

// The run of a group in float64, checked.
const Course& exact_course(const StepsCase& run, const MpiComm& world) {
  static std::string group;
  static Course course;
  if (group != run.group) {
    group.clear();
    GoldenSteps steps({run.group, torch::kDouble, run.channels_last}, world);
    course = steps.take();
    steps.check_against_golden(course);
    group = run.group;
  }
  return course;
}

// Distances between two runs: of losses, and Euclidean ones of tensors. After more than one step those of all
// together: one hard negative chosen otherwise changes the tensors of a small map much and others little.
struct Distances {
  std::vector<double> losses;
  std::map<std::string, double> tensors;
};

// b may have more steps.
Distances distances(const Course& a, const Course& b) {
  Distances between;
  for (std::size_t s = 0; s < a.losses.size(); ++s)
    between.losses.push_back(std::abs(a.losses[s] - b.losses[s]));
  for (const auto& [name, tensor] : a.gradients)
    between.tensors["gradient of " + name] = (tensor - b.gradients.at(name)).norm().item<double>();
  for (const auto& [steps, tensors] : a.after) {
    for (const auto& [name, tensor] : tensors) {
      const double distance = (tensor - b.after.at(steps).at(name)).norm().item<double>();
      const bool is_buffer = name.find(".running_") != std::string::npos || name.ends_with("_tracked");
      auto& sum = between.tensors[steps == 1 ? "after step 1 " + name
                                             : fmt::format("after step {} {}", steps,
                                                           is_buffer ? "all buffers" : "all parameters")];
      sum = std::hypot(sum, distance);
    }
  }
  return between;
}

class GoldenStepsTest : public testing::TestWithParam<StepsCase> {};

// Float32 is compared for as many steps; later on, which hard negatives are chosen differs, and runs go
// apart.
constexpr std::size_t kFloatSteps = 6;

TEST_P(GoldenStepsTest, equal_the_reference_run) {
  const auto world = test::copy_of_world();
  const auto& run = GetParam();
  const bool needs_two = std::string(run.group) == "two_ranks";
  if (needs_two != (world.world_size() == 2))
    GTEST_SKIP() << "for " << (needs_two ? "two ranks" : "one rank");
  torch::set_num_threads(1);
  const auto& exact = exact_course(run, world);
  if (run.type == torch::kDouble) return;
  const auto got = distances(GoldenSteps(run, world).take(kFloatSteps), exact);
  const test::RoundingNoise noise(test::kFloatUnitForDecisions, 1);
  const auto reach = distances(
      GoldenSteps({run.group, torch::kDouble, run.channels_last}, world).take_rounded(kFloatSteps), exact);
  for (std::size_t s = 0; s < got.losses.size(); ++s) {
    // A loss alone may come out near by chance: the first three steps share the largest distance.
    const auto end = reach.losses.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(s + 1, 3));
    EXPECT_LE(got.losses[s], test::kRoundingSafety * *std::max_element(reach.losses.begin(), end))
        << run.group << " step " << s;
  }
  for (const auto& [name, distance] : got.tensors)
    EXPECT_LE(distance, test::kRoundingSafety * reach.tensors.at(name)) << run.group << " " << name;
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
