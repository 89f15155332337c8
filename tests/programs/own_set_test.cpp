// First use with data of one's own: small sets with other classes, packed and trained by the programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "programs/trained_set.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::run_ranks;
using testing::HasSubstr;

using Classes = std::vector<std::pair<int, std::string>>;  // id and name

// Photos of blood cells under ids of their own; the first `with_boxes` have a box each, of the first and the
// last class in turn.
void pack(const fs::path& out, const char* split, int images, int with_boxes,
          const Classes& classes = {{0, "red"}, {5, "white"}}) {
  json set{{"images", json::array()}, {"annotations", json::array()}, {"categories", json::array()}};
  for (const auto& [id, name] : classes) set["categories"].push_back({{"id", id}, {"name", name}});
  const fs::path photos = fs::path(SSD_TEST_DATA) / "bccd/JPEGImages";
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(photos)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  for (int i = 0; i < images; ++i) {
    set["images"].push_back({{"id", 70 + i}, {"file_name", names.at(static_cast<std::size_t>(i))}});
    if (i >= with_boxes) continue;
    set["annotations"].push_back({{"id", i + 1},
                                  {"image_id", 70 + i},
                                  {"category_id", i % 2 == 0 ? classes.front().first : classes.back().first},
                                  {"bbox", {40, 40, 150, 120}}});
  }
  const auto file = out.string() + "." + split + ".json";
  write_text(file, set.dump());
  const auto run = run_program({SSD_BIN_DIR "/ssd_preprocess", "--split", split, "--annotations", file,
                                "--images", photos.string(), out.string()});
  if (run.exit_code != 0) throw std::runtime_error(run.err);
}

std::vector<std::string> training(const fs::path& data, std::vector<std::string> more) {
  std::vector<std::string> arguments{
      "--data", data.string(), "--device", "cpu",    "--backbone", "resnet18",     "--fp16", "--batch-size",
      "2",      "--epochs",    "1",        "--seed", "1",          "--evaluation", "none",   "--log-interval",
      "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

TEST(OwnSet, T1_01_of_six_images_and_two_classes_has_three_iterations_of_two) {
  const TemporaryFolder folder;
  pack(folder.path() / "set", "train", 6, 6);
  const auto run = run_ranks(1, training(folder.path() / "set", {}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("SSD300 with resnet18, 2 classes and the background"));
  EXPECT_THAT(run.err,
              HasSubstr("6 images, 6 of them with boxes to train on; 3 iterations an epoch, 1 epochs\n"));
  EXPECT_EQ(count(run.err, "| loss "), 3) << run.err;
}

TEST(OwnSet, T1_05_images_without_boxes_are_left_out_of_training_and_the_loss_is_finite) {
  const TemporaryFolder folder;
  pack(folder.path() / "set", "train", 3, 2);
  const auto log = folder.path() / "log";
  const auto run = run_ranks(1, training(folder.path() / "set", {"--json-summary", log.string()}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("3 images, 2 of them with boxes to train on; 1 iterations an epoch"));
  int losses = 0;
  std::istringstream lines(text_of(log));
  for (std::string line; std::getline(lines, line);) {
    const auto data =
        json::parse(line.substr(5)).value("data", json::object());  // lines of metadata have none
    if (!data.contains("loss")) continue;
    ++losses;
    EXPECT_TRUE(data["loss"].is_number()) << line;  // what is not finite is null
  }
  EXPECT_EQ(losses, 1);
}

// Two images for four ranks of batch 2: the tail is filled from the head of the order. Two of the ranks have
// no image to evaluate.
TEST(OwnSet, T1_06_T5_03_T5_16_more_ranks_than_images_train_and_evaluate) {
  const TemporaryFolder folder;
  pack(folder.path() / "set", "train", 2, 2);
  pack(folder.path() / "set", "val", 2, 1);
  const auto run =
      run_ranks(4, training(folder.path() / "set", {"--evaluation", "last", "--eval-batch-size", "1"}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr("2 images, 2 of them with boxes to train on; 1 iterations an epoch, 1 epochs\n"));
  EXPECT_THAT(run.err, HasSubstr(", 2 images in "));
  EXPECT_EQ(count(run.out, "Average "), 12) << run.out;
}

TEST(OwnSet, T5_03_a_benchmark_of_more_ranks_than_images_ends_with_one_line) {
  const TemporaryFolder folder;
  pack(folder.path() / "set", "val", 2, 2);
  const auto run = run_ranks(
      4, training(folder.path() / "set", {"--mode", "benchmark-inference", "--eval-batch-size", "1"}));
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_EQ(count(run.err, "error: "), 1) << run.err;
  EXPECT_THAT(
      run.err,
      HasSubstr("error: --mode benchmark-inference: 2 batches of 1 images for 4 ranks; take fewer ranks\n"));
}

TEST(OwnSet, T5_07_two_runs_at_once_do_not_disturb_each_other) {
  const TemporaryFolder folder;
  pack(folder.path() / "set", "train", 4, 4);
  std::vector<ProgramResult> runs(2);
  {
    std::vector<std::jthread> threads;
    for (auto& run : runs)
      threads.emplace_back([&] { run = run_ranks(2, training(folder.path() / "set", {})); });
  }
  for (const auto& run : runs) EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST(OwnSet, T5_08_a_run_without_an_epoch_ends_well_every_time) {
  const TemporaryFolder folder;
  pack(folder.path() / "set", "train", 4, 4);
  const int times = std::getenv("SSD_TEST_LONG") != nullptr ? 20 : 3;
  for (int i = 0; i < times; ++i) {
    const auto run = run_ranks(2, training(folder.path() / "set", {"--epochs", "0"}));
    EXPECT_EQ(run.exit_code, 0) << run.err;
  }
}

TEST(OwnSet, T5_14_resumes_with_another_number_of_ranks_at_the_rate_of_these_ranks) {
  const TemporaryFolder folder;
  pack(folder.path() / "set", "train", 4, 4);
  const auto models = folder.path() / "models";
  const auto save = models.string();
  const auto first = run_ranks(1, training(folder.path() / "set", {"--save", save}));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("learning rate 0.0001625 = 0.0026 * 1 ranks * 2 / 32"));
  const auto checkpoint = (models / "epoch_0.pt").string();
  const auto second = run_ranks(
      2, training(folder.path() / "set",
                  {"--checkpoint", checkpoint, "--epochs", "2", "--save", save, "--momentum", "0.8"}));
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("learning rate 0.000325 = 0.0026 * 2 ranks * 2 / 32"));
  EXPECT_THAT(second.err, HasSubstr("warning: the checkpoint was made with ranks: 1, this run has 2"));
  EXPECT_THAT(second.err, HasSubstr("goes on with its own: --momentum 0.8 (then 0.9)\n"));
  EXPECT_EQ(count(second.err, "| loss "), 1) << second.err;  // the epoch that is left, 4 images by 4
  EXPECT_TRUE(fs::exists(models / "epoch_1.pt"));
}

TEST(OwnSet, shards_are_copied_to_the_nodes_disk_once_and_give_the_same_losses) {
  const TemporaryFolder folder;
  pack(folder.path() / "set", "train", 4, 4);
  const auto disk = folder.path() / "disk";
  const auto plain = run_ranks(2, training(folder.path() / "set", {}));
  const std::vector<std::string> staging{"--stage-dir", disk.string()};
  const auto first = run_ranks(2, training(folder.path() / "set", staging));
  const auto second = run_ranks(2, training(folder.path() / "set", staging));
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(count(first.err, "copied and verified"), 1) << first.err;  // by one rank
  EXPECT_EQ(count(second.err, "copied and verified"), 0) << second.err;
  const auto loss_of = [](const ProgramResult& run) {
    const auto at = run.err.find("| loss ");
    return at == std::string::npos ? "none" : run.err.substr(at, run.err.find('|', at + 1) - at);
  };
  EXPECT_NE(loss_of(plain), "none") << plain.err;
  EXPECT_EQ(loss_of(first), loss_of(plain));
  // The shared set is not needed any more once its copy is there, but its manifest is.
  fs::remove(folder.path() / "set" / "train-00000-of-00001.h5");
  const auto third = run_ranks(2, training(folder.path() / "set", staging));
  EXPECT_EQ(third.exit_code, 0) << third.err;
  EXPECT_EQ(loss_of(third), loss_of(plain));
}

// Shards in which val was packed from annotations with other classes than train.
fs::path set_with_val(const fs::path& folder, const Classes& classes) {
  pack(folder / "set", "train", 4, 4);
  pack(folder / "other", "val", 4, 4, classes);
  for (const auto& entry : fs::directory_iterator(folder / "other"))
    if (entry.path().filename().string().starts_with("val"))
      fs::rename(entry.path(), folder / "set" / entry.path().filename());
  return folder / "set";
}

struct OtherVal {
  const char* name;
  Classes classes;
  const char* error;  // after "the val shards in 'DIR': "
};

class OtherValTest : public testing::TestWithParam<OtherVal> {};

TEST_P(OtherValTest, U2_is_refused_once_on_all_ranks_before_the_first_step) {
  const TemporaryFolder folder;
  const auto set = set_with_val(folder.path(), GetParam().classes);
  const auto expected = "error: the val shards in '" + set.string() + "': " + GetParam().error +
                        "; pack both splits from annotations with the same ids and names\n";
  for (const int ranks : {1, 4}) {
    const auto run = run_ranks(ranks, training(set, {"--evaluation", "last"}));
    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_EQ(count(run.err, "error: "), 1) << run.err;
    EXPECT_THAT(run.err, HasSubstr(expected));
    EXPECT_EQ(count(run.err, "| loss "), 0) << run.err;
  }
}

INSTANTIATE_TEST_SUITE_P(
    U2, OtherValTest,
    testing::Values(OtherVal{"swapped",
                             {{0, "white"}, {5, "red"}},
                             "category 0 is 'white', but in the train shards it is 'red'"},
                    OtherVal{"renamed",
                             {{0, "red"}, {5, "White"}},
                             "category 5 is 'White', but in the train shards it is 'white'"},
                    OtherVal{
                        "more",
                        {{0, "red"}, {6, "blue"}, {5, "white"}},
                        "category 6 'blue' is no class of the train shards, whose 2 classes are red, white"}),
    [](const auto& item) { return std::string(item.param.name); });

// Detections of one class: image, box and score.
std::vector<json> found_of(const fs::path& results, int category) {
  std::vector<json> found;
  for (const auto& detection : json::parse(text_of(results))) {
    if (detection["category_id"] == category)
      found.push_back({detection["image_id"], detection["bbox"], detection["score"]});
  }
  return found;
}

TEST(OwnSet, U2_val_with_some_of_the_classes_under_other_ids_is_scored_as_these_classes) {
  const TemporaryFolder all, some;
  const auto whole = set_with_val(all.path(), {{0, "red"}, {5, "white"}});
  const auto subset = set_with_val(some.path(), {{9, "white"}});
  const auto whole_results = all.path() / "found.json", results = some.path() / "found.json";
  const auto save = all.path() / "models";
  const auto trained = run_ranks(1, training(whole, {"--evaluation", "last", "--results",
                                                     whole_results.string(), "--save", save.string()}));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto expected = found_of(whole_results, 5);
  ASSERT_GT(expected.size(), 0U);
  EXPECT_NE(expected, found_of(whole_results, 0));
  // In training, ...
  const auto run = run_ranks(2, training(subset, {"--evaluation", "last", "--results", results.string()}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(found_of(results, 9).size(), 0U);
  EXPECT_GT(found_of(results, 0).size(), 0U);  // of a class that val lacks: train's id
  // ... and of a checkpoint with the names of its classes, which knows no ids.
  const auto evaluated =
      run_ranks(2, {"--data", subset.string(), "--device", "cpu", "--fp16", "--mode", "evaluation",
                    "--checkpoint", (save / "epoch_0.pt").string(), "--results", results.string()});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_EQ(found_of(results, 9), expected);
}

TEST(OwnSet, U2_a_checkpoint_of_other_classes_is_refused_in_training_and_evaluation) {
  const TemporaryFolder folder;
  const auto set = folder.path() / "set", other = folder.path() / "other", save = folder.path() / "models";
  pack(set, "train", 4, 4);
  for (const char* split : {"train", "val"}) pack(other, split, 4, 4, {{0, "red"}, {5, "blue"}});
  const auto trained = run_ranks(1, training(set, {"--save", save.string()}));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto file = (save / "epoch_0.pt").string();
  const auto resumed = run_ranks(2, training(other, {"--checkpoint", file, "--epochs", "2"}));
  EXPECT_EQ(resumed.exit_code, 1);
  EXPECT_EQ(count(resumed.err, "error: "), 1) << resumed.err;
  EXPECT_THAT(resumed.err,
              HasSubstr("error: checkpoint '" + file +
                        "': its class 2 is 'white', that of the train shards is 'blue'; take the data "
                        "set it was trained on, or start from its weights alone: ssd_checkpoint "));
  const auto evaluated = run_ranks(2, training(other, {"--mode", "evaluation", "--checkpoint", file}));
  EXPECT_EQ(evaluated.exit_code, 1);
  EXPECT_EQ(count(evaluated.err, "error: "), 1) << evaluated.err;
  EXPECT_THAT(evaluated.err,
              HasSubstr("error: the val shards in '" + other.string() +
                        "': category 5 'blue' is no class of checkpoint '" + file +
                        "', whose 2 classes are red, white; take the data set that it was trained on\n"));
}

TEST(OwnSet, U15_few_open_files_are_enough_where_the_hard_limit_allows_more_and_told_where_not) {
  const TemporaryFolder folder;
  const auto set = folder.path() / "set";
  const auto packed =
      run_program({SSD_BIN_DIR "/ssd_preprocess", "--split", "train", "--shard-size", "4KiB", "--annotations",
                   SSD_TEST_DATA "/coco_free/annotations/instances_train2017.json", "--images",
                   SSD_TEST_DATA "/coco_free/train2017", set.string()});
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  const auto limited = [&](const std::string& limit) {
    std::string command = limit + "; exec " + test::kProgram;
    for (const auto& word : training(set, {"--epochs", "0"})) command += " '" + word + "'";
    return run_program({"/bin/sh", "-c", command});
  };
  const auto raised = limited("ulimit -S -n 20");
  EXPECT_EQ(raised.exit_code, 0) << raised.err;
  const auto refused = limited("ulimit -n 20");
  EXPECT_EQ(refused.exit_code, 1) << refused.err;
  EXPECT_THAT(refused.err, testing::ContainsRegex(
                               "error: ulimit -n is 20: so many files may be open, but [0-9]+ or more are "
                               "needed for the 7 train shards in '" +
                               set.string() + "'.*ulimit -n 1024"));
}

// The output goes to a file here, as under a batch system.
TEST(OwnSet, T5_18_a_log_file_has_whole_lines_without_carriage_returns_and_grows_during_the_run) {
  const TemporaryFolder folder;
  pack(folder.path() / "set", "train", 4, 4);
  pack(folder.path() / "set", "val", 2, 2);
  std::vector<std::string> command{SSD_MPIEXEC, "-np", "2", test::kProgram};
  for (const auto& word : training(folder.path() / "set", {"--evaluation", "0", "--epochs", "3"}))
    command.push_back(word);
  const auto child = start_program(command, folder.path());
  const auto log = folder.path() / "err";
  bool is_running = true, had_a_loss_while_running = false;
  int status = 0;
  while (is_running) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (count(text_of(log), "| loss ") == 1) had_a_loss_while_running = true;
    is_running = ::waitpid(child, &status, WNOHANG) == 0;
  }
  ASSERT_EQ(status, 0) << text_of(log);
  EXPECT_TRUE(had_a_loss_while_running);
  for (const auto& text : {text_of(log), text_of(folder.path() / "out")}) {
    EXPECT_EQ(text.find_first_of("\r\x1b"), text.npos) << text;
    EXPECT_TRUE(text.ends_with('\n'));
  }
  EXPECT_EQ(count(text_of(log), "| loss "), 3);
}

}  // namespace
}  // namespace ssd
