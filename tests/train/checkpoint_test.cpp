// Training state to a file and back, and the reference's own checkpoint: tests/data/golden/README.txt,
// section 9.
#include "train/training_checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model/model_tensors.hpp"
#include "support/files.hpp"
#include "support/golden_batch.hpp"
#include "train/train_step.hpp"

namespace ssd {
namespace {

using test::GoldenFile;
using test::tensor_of;

// Unpacks an .xz file of the test data.
std::filesystem::path unpack(const TemporaryFolder& folder, const std::string& name) {
  const auto path = folder.path() / name;
  const auto command = fmt::format("xz -dc '{}/checkpoint/{}.xz' > '{}'", SSD_TEST_DATA, name, path.string());
  if (std::system(command.c_str()) != 0) throw std::runtime_error("cannot run: " + command);
  return path;
}

std::string message_of(auto&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

struct TrainedModel {
  explicit TrainedModel(Backbone backbone = Backbone::resnet18, int classes = 81,
                        const ArenaOptions& options = {})
      : model(backbone, classes), arena(model, options) {}
  Ssd300 model;
  ParameterArena arena;
};

TEST(ReferenceCheckpoint, loads_and_gives_the_reference_forward_and_next_step) {
  const TemporaryFolder folder;
  const auto path = unpack(folder, "epoch_0_resnet18.pt");
  std::ifstream stream(SSD_TEST_DATA "/checkpoint/epoch_0_resnet18.pt.xz.json");
  const auto check = nlohmann::json::parse(stream)["resume_check"];
  torch::set_num_threads(1);
  TrainedModel trained;
  const auto facts = load_checkpoint(read_checkpoint_file(path), trained.model, trained.arena);
  EXPECT_EQ(facts.position.epoch, 1);
  EXPECT_EQ(facts.position.iteration, 3);
  EXPECT_TRUE(facts.has_optimizer);
  EXPECT_FALSE(facts.scaler.has_value());

  trained.model.eval();
  {
    torch::NoGradGuard no_grad;
    const auto [locations, confidences] = trained.model.forward(test::field({2, 3, 300, 300}, "image", 4));
    for (const auto& [name, output] : {std::pair{"ploc", locations}, std::pair{"plabel", confidences}}) {
      const auto& wanted = check["forward"][name];
      const auto index = wanted["index"].get<std::vector<std::int64_t>>();
      const auto values = wanted["value_f32"].get<std::vector<float>>();
      const auto got = output.flatten().index_select(0, tensor_of(index));
      EXPECT_LE((got - tensor_of(values)).abs().max().item<double>(), 5e-5) << name;  // README, section 9
    }
  }

  std::map<std::string, torch::Tensor> start;
  for (const auto& block : trained.arena.blocks()) {
    for (const auto& entry : block.entries) start[entry.name] = trained.arena.master_of(block, entry).clone();
  }
  GradientReducer reducer(trained.arena, nullptr, {});
  LossScaler scaler(LossScaling::none, torch::kCPU);
  TrainStep step(trained.model, trained.arena, reducer, scaler, {});
  trained.model.train();
  const auto [images, targets] = test::golden_batch(0, torch::kFloat);
  const double loss = step.run(images, targets, 8.125e-5).item<double>();
  const auto& wanted = check["step"];
  EXPECT_NEAR(loss, wanted["loss_f32"].get<double>(), 1e-5 * loss);
  int compared = 0;
  for (const auto& block : trained.arena.blocks()) {
    for (const auto& entry : block.entries) {
      const double moved = (trained.arena.master_of(block, entry) - start.at(entry.name))
                               .to(torch::kDouble)
                               .norm()
                               .item<double>();
      const double norm = wanted["moved_f32"][entry.name];
      EXPECT_NEAR(moved, norm, 1e-2 * norm) << entry.name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 99);
}

TEST(TrainingCheckpoint, comes_back_with_every_bit) {
  const TemporaryFolder folder;
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    const ArenaOptions options{type, type == torch::kBFloat16};
    TrainedModel saved(Backbone::resnet18, 4, options);
    initialise_weights(saved.model, 5);
    torch::manual_seed(6);
    for (auto& block : saved.arena.blocks()) {
      for (const auto& entry : block.entries) {
        saved.arena.master_of(block, entry).normal_();
        saved.arena.momentum_of(block, entry).normal_();
      }
    }
    saved.arena.copy_masters_to_weights();
    TrainingFacts facts;
    facts.position = {7, 3, 185};
    facts.scaler = {1024, 55, 2};
    facts.seed = 0xFFFFFFFFFFFFFFFFULL;
    facts.schedule.world_size = 2;
    facts.schedule.batch_size = 4;
    facts.class_names = {"RBC", "WBC", "Platelets"};
    facts.cpu = "AMX";
    const auto path = folder.path() / "epoch_6.pt";
    write_checkpoint_file(path, make_checkpoint(take_snapshot(saved.model, saved.arena), facts));

    TrainedModel loaded(Backbone::resnet18, 4, options);
    const auto item = read_checkpoint_file(path);
    const auto resumed = load_checkpoint(item, loaded.model, loaded.arena);
    EXPECT_EQ(resumed.position.epoch, 7);
    EXPECT_EQ(resumed.position.iteration_in_epoch, 3);
    EXPECT_EQ(resumed.position.iteration, 185);
    EXPECT_EQ(resumed.scaler->scale, 1024);
    EXPECT_EQ(resumed.scaler->good_steps, 55);
    EXPECT_EQ(resumed.seed, facts.seed);
    EXPECT_EQ(resumed.world_size, 2);
    EXPECT_EQ(item.at("label_map").at(2).text(), "WBC");
    EXPECT_EQ(item.at("optimizer").at("param_groups").items().size(), 2U);
    for (std::size_t b = 0; b < 2; ++b) {
      EXPECT_TRUE(loaded.arena.blocks()[b].master.equal(saved.arena.blocks()[b].master));
      EXPECT_TRUE(loaded.arena.blocks()[b].momentum.equal(saved.arena.blocks()[b].momentum));
      EXPECT_TRUE(loaded.arena.blocks()[b].weights.equal(saved.arena.blocks()[b].weights));
    }
  }
}

TEST(TrainingCheckpoint, T1_02_of_another_class_count_or_backbone_is_refused_with_one_line) {
  const TemporaryFolder folder;
  TrainedModel saved(Backbone::resnet18, 4);
  const auto path = folder.path() / "epoch_0.pt";
  write_checkpoint_file(path, make_checkpoint(take_snapshot(saved.model, saved.arena), {}));
  TrainedModel more_classes(Backbone::resnet18, 81), deeper(Backbone::resnet34, 4);
  EXPECT_EQ(message_of(
                [&] { load_checkpoint(read_checkpoint_file(path), more_classes.model, more_classes.arena); }),
            fmt::format("checkpoint '{}': it is of a network for 3 classes and the background, the data set "
                        "has 80 classes; "
                        "take the data set it was trained on, or start anew without --checkpoint",
                        path.string()));
  EXPECT_THAT(message_of([&] { load_checkpoint(read_checkpoint_file(path), deeper.model, deeper.arena); }),
              testing::HasSubstr("SSD300 with resnet34"));
}

TEST(NewestCheckpoint, T5_13_goes_by_number_and_not_by_letters) {
  const std::vector<std::filesystem::path> files{"m/epoch_10.pt", "m/epoch_9.pt", "m/epoch_1.pt"};
  EXPECT_EQ(newest_checkpoint(files), "m/epoch_10.pt");
}

TEST(BackboneFile, of_torchvision_fills_the_feature_extractor_and_nothing_else) {
  const TemporaryFolder folder;
  const auto path = unpack(folder, "backbone_resnet18.pth");
  const auto item = read_checkpoint_file(path);
  Ssd300 model(Backbone::resnet18, 4), untouched(Backbone::resnet18, 4);
  initialise_weights(model, 1);
  initialise_weights(untouched, 1);
  load_backbone(item, model);
  std::map<std::string, torch::Tensor> after;
  for (const auto& tensor : model_tensors(model)) after[tensor.name] = tensor.tensor;
  for (const auto& tensor : model_tensors(untouched)) {
    if (tensor.name.starts_with("feature_extractor.")) continue;
    EXPECT_TRUE(after.at(tensor.name).equal(tensor.tensor)) << tensor.name;
  }
  // The file follows the fill rule with low entropy for the keys of torchvision: section 9.
  const auto value = contiguous_bytes(item.at("layer3.0.conv1.weight").tensor());
  const auto got = after.at("feature_extractor.feature_extractor.6.0.conv1.weight").contiguous();
  ASSERT_EQ(value.size(), got.nbytes());
  EXPECT_EQ(std::memcmp(value.data(), got.data_ptr(), value.size()), 0);
  Ssd300 deeper(Backbone::resnet50, 4);
  EXPECT_THAT(message_of([&] { load_backbone(item, deeper); }),
              testing::HasSubstr("is not one of torchvision's resnet50"));
}

}  // namespace
}  // namespace ssd
