// ssd_infer as a user starts it, with a network that ssd_train trained for one epoch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "image/jpeg.hpp"
#include "programs/trained_set.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

const fs::path kData = SSD_TEST_DATA;
const fs::path kPhotos = kData / "coco_free/val2017";
const std::string kTruth = (kData / "coco_free/annotations/instances_val2017.json").string();

// A checkpoint of ResNet-18 and COCO's classes; made once for the test program.
const std::string& checkpoint() {
  static const TemporaryFolder folder;
  static const auto run = test::run_ranks(1, test::short_training(folder.path(), 1));
  if (run.exit_code != 0) throw std::runtime_error("cannot train: " + run.err);
  static const auto path = (folder.path() / "epoch_0.pt").string();
  return path;
}

ProgramResult infer(const std::vector<std::string>& more) {
  std::vector<std::string> command{SSD_BIN_DIR "/ssd_infer", "--checkpoint", checkpoint(), "--device", "cpu"};
  command.insert(command.end(), more.begin(), more.end());
  return run_program(command);
}

std::map<std::int64_t, json> by_image(const fs::path& results) {
  std::map<std::int64_t, json> images;
  for (const auto& detection : json::parse(text_of(results)))
    images[detection["image_id"]].push_back(detection);
  return images;
}

RgbImage decoded(const fs::path& path) {
  RgbImage image;
  JpegDecoder().decode(bytes_of(path), image);
  return image;
}

TEST(SsdInfer, finds_what_the_evaluation_finds_bit_for_bit) {
  const TemporaryFolder folder;
  const auto found = folder.path() / "found.json", evaluated = folder.path() / "evaluated.json";
  const auto run = infer({"--score-threshold", "0.05", "--max-detections", "200", "--batch-size", "2",
                          "--truth", kTruth, "--output", found.string(), kPhotos.string()});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto evaluation = test::run_ranks(
      1, {"--data", test::packed_photos().string(), "--device", "cpu", "--mode", "evaluation",
          "--eval-batch-size", "2", "--results", evaluated.string(), "--checkpoint", checkpoint()});
  ASSERT_EQ(evaluation.exit_code, 0) << evaluation.err;
  EXPECT_GT(by_image(evaluated).size(), 0U) << "no detection: nothing was compared";
  EXPECT_EQ(by_image(found), by_image(evaluated));
}

// The checkpoint's file with another value under a key of it.
std::string with(const fs::path& file, const char* key, Value value) {
  auto root = read_checkpoint_file(checkpoint()).dict();
  root.set(key, std::move(value));
  write_checkpoint_file(file, root);
  return file.string();
}

TEST(SsdInfer, U9_an_optimizer_of_another_kind_is_of_no_matter_but_to_a_training_that_goes_on) {
  const TemporaryFolder folder;
  Dict slot, state, adam;
  slot.set("exp_avg", make_tensor(DType::float32, {1}, std::vector<std::byte>(4)));
  state.set(std::int64_t{0}, slot);
  adam.set("state", state);
  auto groups = read_checkpoint_file(checkpoint()).at("optimizer").at("param_groups").value();
  adam.set("param_groups", groups);
  const auto file = with(folder.path() / "adam.pt", "optimizer", adam);
  const auto data = test::packed_photos().string(), weights = (folder.path() / "weights.pt").string();
  EXPECT_EQ(infer({"--checkpoint", file, "--output", (folder.path() / "f.json").string(), kPhotos.string()})
                .exit_code,
            0);
  const auto evaluation =
      test::run_ranks(1, {"--data", data, "--device", "cpu", "--mode", "evaluation", "--checkpoint", file});
  EXPECT_EQ(evaluation.exit_code, 0) << evaluation.err;
  EXPECT_EQ(run_program({SSD_BIN_DIR "/ssd_checkpoint", file}).exit_code, 0);
  const std::vector<std::string> training{"--data",   data, "--device",     "cpu",  "--batch-size", "2",
                                          "--epochs", "1",  "--evaluation", "none", "--checkpoint"};
  auto command = training;
  command.push_back(file);
  const auto refused = test::run_ranks(2, command);
  EXPECT_EQ(refused.exit_code, 1);
  ASSERT_EQ(test::lines_with(refused.err, "error: ").size(), 1U) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("to start from the weights alone: ssd_checkpoint " + file +
                                     " --output weights.pt --weights-only, then --checkpoint weights.pt\n"));
  // That way works.
  ASSERT_EQ(
      run_program({SSD_BIN_DIR "/ssd_checkpoint", file, "--output", weights, "--weights-only"}).exit_code, 0);
  command.back() = weights;
  const auto started = test::run_ranks(1, command);
  EXPECT_EQ(started.exit_code, 0) << started.err;
  EXPECT_THAT(started.err, HasSubstr("': epoch 0, iteration 0, weights alone\n"));
  EXPECT_THAT(started.err, HasSubstr("done: 1 epochs"));
}

TEST(SsdInfer, U13_weights_that_are_not_finite_are_refused_by_name) {
  const TemporaryFolder folder;
  auto model = read_checkpoint_file(checkpoint()).at("model").dict();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto bytes = contiguous_bytes(*model.find("loc.0.bias")->get_if<TensorValue>());
  std::memcpy(bytes.data(), &nan, sizeof nan);
  model.set("loc.0.bias", make_tensor(DType::float32, {16}, std::move(bytes)));
  const auto file = with(folder.path() / "nan.pt", "model", model);
  const auto expected = HasSubstr("error: checkpoint '" + file +
                                  "': tensor 'loc.0.bias' has 1 of 16 values that are not finite");
  const auto found =
      infer({"--checkpoint", file, "--output", (folder.path() / "f.json").string(), kPhotos.string()});
  EXPECT_EQ(found.exit_code, 1);
  EXPECT_THAT(found.err, expected);
  for (const char* mode : {"training", "evaluation"}) {
    const auto run = test::run_ranks(2, {"--data", test::packed_photos().string(), "--device", "cpu",
                                         "--mode", mode, "--batch-size", "2", "--checkpoint", file});
    EXPECT_EQ(run.exit_code, 1) << mode;
    EXPECT_EQ(test::lines_with(run.err, "error: ").size(), 1U) << run.err;
    EXPECT_THAT(run.err, expected);
    EXPECT_EQ(run.err.find("iter "), run.err.npos) << run.err;
  }
}

TEST(SsdInfer, U17_a_training_goes_on_without_being_told_the_backbone_and_says_it_in_its_file) {
  const TemporaryFolder folder;
  const auto data = test::packed_photos().string();
  const auto more = test::run_ranks(
      2, {"--data", data, "--device", "cpu", "--batch-size", "2", "--epochs", "2", "--evaluation", "none",
          "--checkpoint", checkpoint(), "--save", folder.path().string()});
  ASSERT_EQ(more.exit_code, 0) << more.err;
  EXPECT_THAT(more.err, HasSubstr("SSD300 with resnet18, 80 classes"));
  const auto shown = run_program({SSD_BIN_DIR "/ssd_checkpoint", (folder.path() / "epoch_1.pt").string()});
  EXPECT_THAT(shown.out, HasSubstr("network: SSD300 with resnet18, 80 classes and the background\n"));
  EXPECT_THAT(shown.out, HasSubstr("    backbone = resnet18\n"));
  const auto refused = test::run_ranks(2, {"--data", data, "--device", "cpu", "--batch-size", "2",
                                           "--backbone", "resnet34", "--checkpoint", checkpoint()});
  EXPECT_EQ(refused.exit_code, 2);
  ASSERT_EQ(test::lines_with(refused.err, "error: ").size(), 1U) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("error: --backbone resnet34: checkpoint '" + checkpoint() +
                                     "' is of an SSD300 with resnet18; leave --backbone out"));
}

TEST(SsdInfer, numbers_pictures_and_says_so_where_there_is_no_truth) {
  const TemporaryFolder folder;
  const auto found = folder.path() / "found.json";
  const auto run = infer({"--score-threshold", "0.05", "--output", found.string(), kPhotos.string()});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("no --truth: image ids are 1, 2, ..."));
  for (const auto& [id, detections] : by_image(found)) {
    EXPECT_GE(id, 1);
    EXPECT_LE(id, 5);
    EXPECT_LE(detections.size(), 20U);
  }
}

TEST(SsdInfer, keeps_only_scores_above_the_threshold_and_the_best) {
  const TemporaryFolder folder;
  const auto all = folder.path() / "all.json", few = folder.path() / "few.json";
  ASSERT_EQ(infer({"--score-threshold", "0.05", "--max-detections", "200", "--output", all.string(),
                   kPhotos.string()})
                .exit_code,
            0);
  ASSERT_EQ(infer({"--score-threshold", "0.06", "--max-detections", "2", "--output", few.string(),
                   kPhotos.string()})
                .exit_code,
            0);
  std::size_t left_out = 0;
  for (const auto& [id, detections] : by_image(all)) {
    json expected = json::array();
    for (const auto& detection : detections) {
      if (detection["score"].get<float>() > 0.06F && expected.size() < 2) expected.push_back(detection);
    }
    left_out += detections.size() - expected.size();
    const auto kept = by_image(few);
    EXPECT_EQ(kept.contains(id) ? kept.at(id) : json::array(), expected) << id;
  }
  EXPECT_GT(left_out, 0U);
}

TEST(SsdInfer, draws_each_picture_and_with_a_truth_two_beside_each_other) {
  const TemporaryFolder folder;
  const auto alone = folder.path() / "alone", both = folder.path() / "deep/both";
  const auto photo = (kPhotos / "000000403385.jpg").string();
  ASSERT_EQ(infer({"--draw", alone.string(), photo}).exit_code, 0);
  ASSERT_EQ(infer({"--draw", both.string(), "--truth", kTruth, photo}).exit_code, 0);
  const auto one = decoded(alone / "000000403385.jpg"), two = decoded(both / "000000403385.jpg");
  EXPECT_EQ(one.width, 640);
  EXPECT_GE(one.height, 511);
  EXPECT_GE(two.width, 2 * 640);
  ASSERT_EQ(infer({"--draw", alone.string(), "--draw-format", "png", photo}).exit_code, 0);
  EXPECT_EQ(text_of(alone / "000000403385.png").substr(1, 3), "PNG");
}

TEST(SsdInfer, names_every_bad_picture_after_the_good_ones_are_done) {
  const TemporaryFolder folder;
  const auto good = (kPhotos / "000000006818.jpg").string(),
             missing = (folder.path() / "missing.jpg").string(), cut = (folder.path() / "cut.jpg").string(),
             no_picture = (folder.path() / "animation.jpg").string();
  write_text(no_picture, "GIF89a");
  write_text(cut, text_of(good).substr(0, 20000));
  const auto run = infer({"--draw", (folder.path() / "drawn").string(), "--output",
                          (folder.path() / "found.json").string(), missing, cut, no_picture, good,
                          (folder.path() / "drawn").string()});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("1 pictures, "));
  EXPECT_TRUE(fs::exists(folder.path() / "drawn/000000006818.jpg"));
  EXPECT_FALSE(fs::exists(folder.path() / "drawn/cut.jpg"));
  EXPECT_TRUE(json::parse(text_of(folder.path() / "found.json")).is_array());
  EXPECT_THAT(run.err, HasSubstr("error: '" + missing + "': No such file or directory\n"));
  EXPECT_THAT(run.err,
              HasSubstr("error: '" + cut + "': cut off: its 20000 bytes end before the picture does\n"));
  EXPECT_THAT(run.err,
              HasSubstr("error: '" + no_picture + "': a GIF picture; JPEG, PNG, WebP and BMP are read\n"));
}

TEST(SsdInfer, never_draws_over_a_picture) {
  const TemporaryFolder folder;
  const auto photo = folder.path() / "a.jpg";
  fs::copy_file(kPhotos / "000000006818.jpg", photo);
  const auto before = text_of(photo);
  const auto run = infer({"--draw", (folder.path() / ".").string(), folder.path().string()});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("'a.jpg' would replace one of the pictures; give another folder"));
  EXPECT_EQ(text_of(photo), before);
}

TEST(SsdInfer, what_does_not_fit_is_one_line_and_an_exit_code) {
  const TemporaryFolder folder;
  const auto never = folder.path() / "never.json";
  const auto error_of = [&](const std::vector<std::string>& more, int exit_code) {
    auto arguments = more;
    arguments.insert(arguments.end(), {"--output", never.string(), kPhotos.string()});
    const auto run = infer(arguments);
    EXPECT_EQ(run.exit_code, exit_code);
    return run.err;
  };
  EXPECT_THAT(error_of({"--truth", (kData / "bccd/coco/instances_test.json").string()}, 1),
              HasSubstr("the truth: category 1 'RBC' is no class of checkpoint '" + checkpoint() +
                        "', whose 80 classes are person, bicycle, "));
  EXPECT_THAT(error_of({"--score-threshold", "2"}, 2),
              HasSubstr("error: --score-threshold 2: must be from 0.05 to less than 1\n"));
  EXPECT_THAT(error_of({"--backbone", "resnet50"}, 2),
              HasSubstr("error: --backbone resnet50: checkpoint '" + checkpoint() +
                        "' is of an SSD300 with resnet18; "));
  const auto ranks = run_program({SSD_MPIEXEC, "-np", "2", SSD_BIN_DIR "/ssd_infer", "--help"});
  EXPECT_EQ(ranks.exit_code, 2);
  EXPECT_THAT(ranks.err, HasSubstr("error: ssd_infer runs in one process; start it without mpirun\n"));
  EXPECT_EQ(ranks.err.find("error:"), ranks.err.rfind("error:"));
  EXPECT_FALSE(fs::exists(never));
}

}  // namespace
}  // namespace ssd
