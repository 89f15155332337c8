// Training state to a file and back, and the reference's own checkpoint: tests/data/golden/README.txt,
// section 9.
#include "train/training_checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model/model_tensors.hpp"
#include "support/files.hpp"
#include "support/golden_batch.hpp"
#include "support/rounding_noise.hpp"
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

// Predictions of the reference's checkpoint, the loss of its next step and how far each tensor moves, in
// float64.
struct Resumed {
  std::map<std::string, torch::Tensor> tensors;
  double loss = 0;
};

// weights_type: what the moved weights are rounded to.
Resumed resume(const CheckpointItem& item, torch::ScalarType type, torch::ScalarType weights_type) {
  TrainedModel trained(Backbone::resnet18, 81, {type, false});
  const auto facts = load_checkpoint(item, trained.model, trained.arena, Restore::training);
  EXPECT_EQ(facts.position.epoch, 1);
  EXPECT_EQ(facts.position.iteration, 3);
  EXPECT_TRUE(facts.has_optimizer);
  EXPECT_FALSE(facts.scaler.has_value());
  Resumed resumed;
  trained.model.eval();
  {
    torch::NoGradGuard no_grad;
    const auto [locations, confidences] =
        trained.model.forward(test::field({2, 3, 300, 300}, "image", 4).to(type));
    resumed.tensors["ploc"] = locations.to(torch::kDouble);
    resumed.tensors["plabel"] = confidences.to(torch::kDouble);
  }
  const auto masters = [&] {
    std::map<std::string, torch::Tensor> copies;
    for (const auto& block : trained.arena.blocks()) {
      for (const auto& entry : block.entries)
        copies[entry.name] = trained.arena.master_of(block, entry).to(torch::kDouble, false, true);
    }
    return copies;
  };
  const auto start = masters();
  GradientReducer reducer(trained.arena, nullptr,
                          {.wire_type = type == torch::kDouble ? WireType::float64 : WireType::float32});
  LossScaler scaler(LossScaling::none, torch::kCPU);
  TrainStep step(trained.model, trained.arena, reducer, scaler, {});
  trained.model.train();
  const auto [images, targets] = test::golden_batch(0, type);
  resumed.loss = step.run(images, targets, 8.125e-5).item<double>();
  for (const auto& [name, tensor] : masters())
    resumed.tensors["moved " + name] = tensor.to(weights_type).to(torch::kDouble) - start.at(name);
  return resumed;
}

TEST(ReferenceCheckpoint, loads_and_gives_the_reference_forward_and_next_step) {
  const TemporaryFolder folder;
  const auto item = read_checkpoint_file(unpack(folder, "epoch_0_resnet18.pt"));
  std::ifstream stream(SSD_TEST_DATA "/checkpoint/epoch_0_resnet18.pt.xz.json");
  const auto check = nlohmann::json::parse(stream)["resume_check"];
  torch::set_num_threads(1);
  const auto exact = resume(item, torch::kDouble, torch::kDouble);
  for (const auto* name : {"ploc", "plabel"}) {
    const auto& wanted = check["forward"][name];
    const auto index = tensor_of(wanted["index"].get<std::vector<std::int64_t>>());
    const auto values = tensor_of(wanted["value_f64"].get<std::vector<double>>());
    const auto got = exact.tensors.at(name).flatten().index_select(0, index);
    EXPECT_LE((got - values).abs().max().item<double>(), 1e-9) << name;  // README, section 6
  }
  const auto& wanted = check["step"];
  EXPECT_NEAR(exact.loss, wanted["loss_f64"].get<double>(), 1e-10 * exact.loss);  // README, section 7
  EXPECT_EQ(wanted["moved_f64"].size(), 99U);
  for (const auto& [name, moved] : wanted["moved_f64"].items()) {
    EXPECT_NEAR(exact.tensors.at("moved " + name).norm().item<double>(), moved.get<double>(),
                1e-8 * moved.get<double>())
        << name;
  }

  // In float32 no further from these than rounding carries float32.
  const auto got = resume(item, torch::kFloat, torch::kFloat);
  const test::RoundingNoise noise(test::kFloatUnitForDecisions, 1);
  const auto noisy = resume(item, torch::kDouble, torch::kFloat);
  // The loss is a sum of 8732 boxes; see rounding_noise.hpp.
  EXPECT_NEAR(got.loss, exact.loss,
              test::kRoundingSafety * test::kFloatUnit * std::sqrt(8732 / 6.) * exact.loss);
  for (const auto& [name, tensor] : exact.tensors) {
    const auto reach = noisy.tensors.at(name) - tensor;
    EXPECT_LE((got.tensors.at(name) - tensor).norm().item<double>(),
              test::kRoundingSafety * reach.norm().item<double>())
        << name;
  }
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
    const auto resumed = load_checkpoint(item, loaded.model, loaded.arena, Restore::training);
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
  EXPECT_EQ(message_of([&] {
              load_checkpoint(read_checkpoint_file(path), more_classes.model, more_classes.arena,
                              Restore::weights);
            }),
            fmt::format("checkpoint '{}': it is of a network for 3 classes and the background, the data set "
                        "has 80 classes; "
                        "take the data set it was trained on, or start anew without --checkpoint",
                        path.string()));
  EXPECT_THAT(message_of([&] {
                load_checkpoint(read_checkpoint_file(path), deeper.model, deeper.arena, Restore::weights);
              }),
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
  EXPECT_THAT(
      message_of([&] { load_backbone(item, deeper); }),
      testing::HasSubstr("it is a resnet18, but --backbone is resnet50; give --backbone resnet18 or "));
}

// The state_dict of a file with another prefix before its names.
Dict renamed(const CheckpointItem& item, const std::string& prefix) {
  Dict renamed(Dict::Kind::ordered);
  for (const auto& [key, value] : item.dict().entries()) renamed.set(prefix + key_text(key), value);
  return renamed;
}

TEST(BackboneFile, U13_is_found_in_wrappers_and_in_larger_networks) {
  const TemporaryFolder folder;
  const auto item = read_checkpoint_file(unpack(folder, "backbone_resnet18.pth"));
  Ssd300 plain(Backbone::resnet18, 4);
  load_backbone(item, plain);
  const auto expect_same = [&](Value root, const char* what) {
    SCOPED_TRACE(what);
    Ssd300 model(Backbone::resnet18, 4);
    initialise_weights(model, 1);
    ASSERT_NO_THROW(load_backbone({"x.pth", std::move(root)}, model));
    const auto expected = model_tensors(plain), got = model_tensors(model);
    int compared = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (!got[i].name.starts_with("feature_extractor.")) continue;
      EXPECT_TRUE(got[i].tensor.equal(expected[i].tensor)) << got[i].name;
      ++compared;
    }
    EXPECT_GT(compared, 60);
  };
  Dict wrapped, within, detector;
  wrapped.set("epoch", 90);
  wrapped.set("arch", "resnet18");
  wrapped.set("state_dict", renamed(item, "module."));
  expect_same(wrapped, "state_dict and module.");
  within.set("model", wrapped);
  expect_same(within, "state_dict below model");
  expect_same(renamed(item, "_orig_mod.module."), "_orig_mod.module.");
  auto parts = renamed(item, "backbone.");
  parts.set("bbox_head.weight", make_tensor(DType::float32, {1}, std::vector<std::byte>(4)));
  detector.set("state_dict", parts);
  expect_same(detector, "a detector's backbone");
}

TensorValue value_with(const TensorValue& tensor, float last) {
  auto bytes = contiguous_bytes(tensor);
  std::memcpy(bytes.data() + bytes.size() - sizeof last, &last, sizeof last);
  return make_tensor(DType::float32, tensor.shape, std::move(bytes));
}

TEST(BackboneFile, U13_of_another_kind_or_with_numbers_that_are_not_finite_is_refused_in_one_line) {
  const TemporaryFolder folder;
  const auto item = read_checkpoint_file(unpack(folder, "backbone_resnet18.pth"));
  const auto error_of = [](Dict root) {
    Ssd300 model(Backbone::resnet18, 4);
    return message_of([&] { load_backbone({"x.pth", Value(std::move(root))}, model); });
  };
  const auto good = item.at("layer2.0.conv1.weight").tensor();
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    auto root = renamed(item, "");
    root.set("layer2.0.conv1.weight", value_with(good, bad));
    EXPECT_EQ(error_of(root),
              fmt::format("backbone 'x.pth': tensor 'layer2.0.conv1.weight' has 1 of {} values "
                          "that are not finite (nan or infinite), as a training that diverged "
                          "leaves them; take another file",
                          good.elements()));
  }
  Dict vgg, two;
  vgg.set("features.0.weight", value_with(good, 0));
  EXPECT_EQ(error_of(vgg),
            "backbone 'x.pth': tensor 'features.0.weight' is not one of a ResNet, and no other is "
            "'layer1.0.conv1.weight'; torchvision's names are expected (a checkpoint of an SSD300 "
            "is given as --checkpoint)");
  for (const char* name : {"student.layer1.0.conv1.weight", "teacher.layer1.0.conv1.weight"})
    two.set(name, value_with(good, 0));
  EXPECT_EQ(error_of(two),
            "backbone 'x.pth': it holds 2 ResNets, below 'student.' and 'teacher.'; save one of "
            "them alone");
}

// A checkpoint of resnet18 and three classes with what is put under a key of it, and its model.
struct ForeignFile {
  ForeignFile() : saved(Backbone::resnet18, 4) {
    initialise_weights(saved.model, 5);
    TrainingFacts facts;
    facts.position = {7, 3, 185};
    root = *make_checkpoint(take_snapshot(saved.model, saved.arena), facts).get_if<Dict>();
  }
  ResumedFacts load(Restore restore) {
    TrainedModel loaded(Backbone::resnet18, 4);
    return load_checkpoint({"x.pt", root}, loaded.model, loaded.arena, restore);
  }
  TrainedModel saved;
  Dict root;
};

TEST(TrainingCheckpoint, U9_only_a_training_that_goes_on_needs_the_optimizer) {
  Dict slot, state, group, adam;
  slot.set("step", std::int64_t{185});
  slot.set("exp_avg", make_tensor(DType::float32, {1}, std::vector<std::byte>(4)));
  state.set(std::int64_t{0}, slot);
  group.set("params", List{{std::int64_t{0}}});
  adam.set("state", state);
  adam.set("param_groups", List{{group}});
  for (const Value& optimizer : {Value(adam), Value(List{}), Value("adam"), Value(Dict())}) {
    ForeignFile file;
    file.root.set("optimizer", optimizer);
    const auto facts = file.load(Restore::weights);
    EXPECT_EQ(facts.position.epoch, 7);
    EXPECT_EQ(facts.position.iteration, 185);
    EXPECT_FALSE(facts.has_optimizer);
    EXPECT_THAT(
        message_of([&] { file.load(Restore::training); }),
        testing::EndsWith(": training cannot go on with this optimizer state, which is not that of SGD "
                          "with momentum for this network; to start from the weights alone: "
                          "ssd_checkpoint x.pt --output weights.pt --weights-only, then --checkpoint "
                          "weights.pt"));
  }
  ForeignFile none;
  none.root.set("optimizer", Value());
  none.root.set("epoch", "seven");
  EXPECT_EQ(none.load(Restore::weights).position.epoch, 0);
  none.root.set("epoch", std::int64_t{7});
  EXPECT_FALSE(none.load(Restore::training).has_optimizer);
}

TEST(TrainingCheckpoint, U13_numbers_that_are_not_finite_are_refused_by_the_tensors_name) {
  ForeignFile file;
  auto model = *file.root.find("model")->get_if<Dict>();
  model.set("loc.2.bias", value_with(*model.find("loc.2.bias")->get_if<TensorValue>(), NAN));
  file.root.set("model", model);
  EXPECT_EQ(
      message_of([&] { file.load(Restore::weights); }),
      "checkpoint 'x.pt': tensor 'loc.2.bias' has 1 of 24 values that are not finite (nan or infinite), as "
      "a training that diverged leaves them; take another file");
}

TEST(BackboneFor, U17_is_the_files_and_another_one_that_is_asked_for_is_refused) {
  const ForeignFile file;
  const CheckpointItem root("x.pt", file.root);
  EXPECT_EQ(backbone_for(root, std::nullopt), Backbone::resnet18);
  EXPECT_EQ(backbone_for(root, Backbone::resnet18), Backbone::resnet18);
  try {
    backbone_for(root, Backbone::resnet50);
    FAIL() << "nothing was thrown";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "--backbone resnet50: checkpoint 'x.pt' is of an SSD300 with resnet18; leave "
                 "--backbone out, it is taken from the file");
  }
}

}  // namespace
}  // namespace ssd
