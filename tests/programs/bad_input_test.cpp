// What a stranger gives ssd_train: wrong folders, damaged shards, foreign checkpoints, wrong flags. One line
// in all, not one for each rank, with its exit code, alone and on 4 ranks.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <functional>

#include "checkpoint/checkpoint.hpp"
#include "programs/trained_set.hpp"
#include "record/shard_set.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using test::kProgram;
using test::packed_photos;
using test::run_ranks;

struct BadRun {
  const char* name;
  std::function<void(const fs::path& work)> prepare;  // work/data is a copy of good shards
  std::vector<std::string> arguments;                 // WORK stands for the folder
  int exit_code;
  std::string error;  // all of the line after "error: "; where it ends in "...", its beginning
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

void change_text(const fs::path& file, const std::string& from, const std::string& to) {
  const auto text = text_of(file);
  if (text.find(from) == std::string::npos)
    throw std::runtime_error(file.string() + " does not hold " + from);
  write_text(file, replaced(text, from, to));
}

fs::path train_shard(const fs::path& work) {
  return work / "data/train-00000-of-00001.h5";
}

void set_format_version(const fs::path& shard, std::uint32_t version) {
  const auto file = H5Fopen(shard.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const auto attribute = H5Aopen(file, "format_version", H5P_DEFAULT);
  const auto status = H5Awrite(attribute, H5T_NATIVE_UINT32, &version);
  H5Aclose(attribute);
  H5Fclose(file);
  if (status < 0) throw std::runtime_error("cannot change " + shard.string());
}

// One number of a dataset is another: the shard's own digest does not fit any more.
void change_a_box(const fs::path& shard) {
  const auto file = H5Fopen(shard.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const auto dataset = H5Dopen2(file, "annotations/area", H5P_DEFAULT);
  const auto space = H5Dget_space(dataset);
  std::vector<double> areas(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, areas.data());
  areas.at(0) += 1;
  const auto status = H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, areas.data());
  H5Sclose(space);
  H5Dclose(dataset);
  H5Fclose(file);
  if (status < 0) throw std::runtime_error("cannot change " + shard.string());
}

Value zeros(std::vector<std::int64_t> shape) {
  std::int64_t count = 1;
  for (const auto n : shape) count *= n;
  return make_tensor(DType::float32, std::move(shape),
                     std::vector<std::byte>(static_cast<std::size_t>(count) * 4));
}

// A state_dict with the head of COCO's 80 classes and one tensor that ResNet-50 has and ResNet-18 has not.
void write_resnet50_checkpoint(const fs::path& work) {
  Dict model(Dict::Kind::ordered), root;
  model.set("conf.0.bias", zeros({324}));
  model.set("feature_extractor.feature_extractor.4.0.conv3.weight", zeros({256, 64, 1, 1}));
  root.set("model", std::move(model));
  write_checkpoint_file(work / "resnet50.pt", root);
}

// A ResNet-18 of one tensor, in the wrapper of a training script.
void write_nan_backbone(const fs::path& work) {
  std::vector<std::byte> bytes(36864 * 4);
  std::fill_n(bytes.begin(), 4, std::byte{0xFF});  // a NaN
  Dict weights(Dict::Kind::ordered), root;
  weights.set("module.layer1.0.conv1.weight", make_tensor(DType::float32, {64, 64, 3, 3}, std::move(bytes)));
  root.set("epoch", 90);
  root.set("state_dict", std::move(weights));
  write_checkpoint_file(work / "nan.pth", root);
}

void nothing(const fs::path&) {}

void PrintTo(const BadRun& bad, std::ostream* out) {
  *out << bad.name;
}

class BadRunTest : public testing::TestWithParam<std::tuple<BadRun, int>> {};

TEST_P(BadRunTest, T5_19_is_told_once_in_all_with_its_exit_code) {
  const auto& [bad, ranks] = GetParam();
  const TemporaryFolder folder;
  fs::copy(packed_photos(), folder.path() / "data", fs::copy_options::recursive);
  bad.prepare(folder.path());
  std::vector<std::string> arguments{"--data",       "WORK/data", "--device",     "cpu",
                                     "--backbone",   "resnet18",  "--batch-size", "2",
                                     "--evaluation", "none",      "--epochs",     "1"};
  arguments.insert(arguments.end(), bad.arguments.begin(), bad.arguments.end());
  for (auto& word : arguments) word = replaced(word, "WORK", folder.path().string());
  ProgramResult run;
  if (ranks == 1) {
    arguments.insert(arguments.begin(), kProgram);
    run = run_program(arguments);
  } else {
    run = run_ranks(ranks, arguments);
  }
  EXPECT_EQ(run.exit_code, bad.exit_code) << run.err;
  EXPECT_EQ(run.out, "");
  std::vector<std::string> errors;
  std::istringstream lines(run.err);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("error: ") != line.npos) errors.push_back(line);
  }
  ASSERT_EQ(errors.size(), 1U) << run.err;
  const auto error =
      replaced(errors[0].substr(errors[0].find("error: ") + 7), folder.path().string(), "WORK");
  if (bad.error.ends_with("...")) {
    EXPECT_THAT(error, testing::StartsWith(bad.error.substr(0, bad.error.size() - 3)));
  } else {
    EXPECT_EQ(error, bad.error);
  }
  EXPECT_TRUE(ranks != 1 || run.err.ends_with(errors[0] + "\n")) << run.err;  // alone: the last line
}

std::string name_of(const testing::TestParamInfo<std::tuple<BadRun, int>>& item) {
  return fmt::format("{}_np{}", std::get<0>(item.param).name, std::get<1>(item.param));
}

INSTANTIATE_TEST_SUITE_P(
    Data, BadRunTest,
    testing::Combine(
        testing::Values(
            BadRun{"no_folder",
                   nothing,
                   {"--data", "WORK/nowhere"},
                   1,
                   "no folder 'WORK/nowhere'; give the folder that ssd_preprocess wrote, with --data or "
                   "SSD_DATA"},
            BadRun{"a_file",
                   [](const fs::path& work) { write_text(work / "file", "x"); },
                   {"--data", "WORK/file"},
                   1,
                   "'WORK/file' is not a folder; give the folder that ssd_preprocess wrote"},
            BadRun{"an_empty_folder",
                   [](const fs::path& work) { fs::create_directories(work / "empty"); },
                   {"--data", "WORK/empty"},
                   1,
                   "'WORK/empty': no train shards (no 'train.manifest.json'); write them with ssd_preprocess "
                   "COCO WORK/empty"},
            BadRun{"a_coco_folder",
                   nothing,
                   {"--data", SSD_TEST_DATA "/coco_free"},
                   1,
                   "'" SSD_TEST_DATA "/coco_free' is a COCO folder, not a set of shards; pack it once: "
                   "ssd_preprocess " SSD_TEST_DATA "/coco_free " SSD_TEST_DATA "/coco_free-shards"},
            BadRun{"an_unfinished_set",
                   [](const fs::path& work) { fs::remove(work / "data/train.manifest.json"); },
                   {},
                   1,
                   "'WORK/data': the train shards are not complete (no 'train.manifest.json'): the run that "
                   "wrote them did not "
                   "finish; run ssd_preprocess again"},
            BadRun{"no_val_shards",
                   [](const fs::path& work) {
                     fs::remove(work / "data/val.manifest.json"),
                         fs::remove(work / "data/val-00000-of-00001.h5");
                   },
                   {"--evaluation", "last"},
                   1,
                   "'WORK/data': no val shards (no 'val.manifest.json'); write them with ssd_preprocess COCO "
                   "WORK/data"},
            BadRun{"manifest_not_json",
                   [](const fs::path& work) { write_text(work / "data/train.manifest.json", "<html>"); },
                   {},
                   1,
                   "manifest 'WORK/data/train.manifest.json': damaged (..."},
            BadRun{"manifest_of_another_version",
                   [](const fs::path& work) {
                     change_text(work / "data/train.manifest.json", "\"format_version\": 1",
                                 "\"format_version\": 9");
                   },
                   {},
                   1,
                   "manifest 'WORK/data/train.manifest.json': format version 9 (this build reads 1); run "
                   "ssd_preprocess again"},
            BadRun{"shard_missing",
                   [](const fs::path& work) { fs::remove(train_shard(work)); },
                   {},
                   1,
                   "shard 'WORK/data/train-00000-of-00001.h5': missing; copy it again or run ssd_preprocess "
                   "again"},
            BadRun{"shard_cut_off",
                   [](const fs::path& work) { fs::resize_file(train_shard(work), 100'000); },
                   {},
                   1,
                   "shard 'WORK/data/train-00000-of-00001.h5': 100000 bytes, the manifest says ..."},
            BadRun{"shard_of_another_version",
                   [](const fs::path& work) { set_format_version(train_shard(work), 9); },
                   {},
                   1,
                   "shard 'WORK/data/train-00000-of-00001.h5': format version 9 (this build reads 1); run "
                   "ssd_preprocess again"},
            BadRun{"shard_of_another_digest",
                   [](const fs::path& work) { change_a_box(train_shard(work)); },
                   {},
                   1,
                   "shard 'WORK/data/train-00000-of-00001.h5': damaged: its content does not match its "
                   "digest; copy it again or run "
                   "ssd_preprocess again"}),
        testing::Values(1, 4)),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Files, BadRunTest,
    testing::Combine(
        testing::Values(
            BadRun{"T1_02_checkpoint_of_another_class_count",
                   nothing,
                   {"--checkpoint", SSD_TEST_DATA "/checkpoint/small/r18_4_classes.pt"},
                   1,
                   "checkpoint '" SSD_TEST_DATA
                   "/checkpoint/small/r18_4_classes.pt': it is of a network for 3 classes and the "
                   "background, the data set has 80 classes; take the data set it was trained on, "
                   "or start anew without "
                   "--checkpoint"},
            BadRun{"T1_02_checkpoint_of_another_backbone",
                   write_resnet50_checkpoint,
                   {"--checkpoint", "WORK/resnet50.pt"},
                   1,
                   "checkpoint 'WORK/resnet50.pt': tensor "
                   "'feature_extractor.feature_extractor.4.0.conv3.weight' is not one of "
                   "SSD300 with resnet18; see --backbone"},
            BadRun{"checkpoint_missing",
                   nothing,
                   {"--checkpoint", "WORK/none.pt"},
                   1,
                   "cannot open 'WORK/none.pt': No such file or directory"},
            BadRun{"checkpoint_is_a_web_page",
                   [](const fs::path& work) { write_text(work / "a.pt", "<!DOCTYPE html>"); },
                   {"--checkpoint", "WORK/a.pt"},
                   1,
                   "checkpoint 'WORK/a.pt': it is an HTML page (a failed download?); a file "
                   "written by torch.save is expected"},
            BadRun{"T1_16_backbone_missing",
                   nothing,
                   {"--backbone-path", "WORK/none.pth"},
                   1,
                   "cannot open 'WORK/none.pth': No such file or directory"},
            BadRun{"backbone_is_a_checkpoint",
                   nothing,
                   {"--backbone-path", SSD_TEST_DATA "/checkpoint/small/r18_4_classes.pt"},
                   1,
                   "backbone '" SSD_TEST_DATA "/checkpoint/small/r18_4_classes.pt': tensor ..."},
            BadRun{"U13_backbone_with_a_nan",
                   [](const fs::path& work) { write_nan_backbone(work); },
                   {"--backbone-path", "WORK/nan.pth"},
                   1,
                   "backbone 'WORK/nan.pth': tensor 'layer1.0.conv1.weight' has 1 of 36864 values that "
                   "are not finite (nan or infinite), as a training that diverged leaves them; take "
                   "another file"},
            BadRun{"save_below_a_file",
                   [](const fs::path& work) { write_text(work / "file", "x"); },
                   {"--save", "WORK/file/models"},
                   1,
                   "--save 'WORK/file/models': cannot make this folder: Not a directory"},
            BadRun{"json_summary_in_no_folder",
                   nothing,
                   {"--json-summary", "WORK/none/log"},
                   1,
                   "cannot open 'WORK/none/log': No such file or directory"},
            BadRun{"results_in_no_folder",
                   nothing,
                   {"--results", "WORK/none/results.json"},
                   1,
                   "cannot write 'WORK/none/results.json': no folder 'WORK/none'; make it first"}),
        testing::Values(1, 4)),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Usage, BadRunTest,
    testing::Combine(
        testing::Values(
            BadRun{"batch_of_one",
                   nothing,
                   {"--batch-size", "1"},
                   2,
                   "--batch-size 1: training needs 2 or more images per rank, since the last BatchNorm sees "
                   "a 1x1 map"},
            BadRun{"unknown_flag",
                   nothing,
                   {"--no-such-flag"},
                   2,
                   "unrecognised option '--no-such-flag'; see ssd_train --help"},
            BadRun{"abbreviated_flag",
                   nothing,
                   {"--epoch", "3"},
                   2,
                   "unrecognised option '--epoch'; see ssd_train --help"},
            BadRun{
                "unknown_short_flag", nothing, {"-x"}, 2, "unrecognised option '-x'; see ssd_train --help"},
            BadRun{"flag_without_value",
                   nothing,
                   {"--epochs"},
                   2,
                   "the required argument for option '--epochs' is missing; see ssd_train --help"},
            BadRun{"negative_epochs", nothing, {"--epochs", "-5"}, 2, "--epochs -5: must be 0 or more"},
            BadRun{"negative_batch", nothing, {"--batch-size=-2"}, 2, "--batch-size -2: must be 1 or more"},
            BadRun{"negative_workers",
                   nothing,
                   {"--num-workers", "-1"},
                   2,
                   "--num-workers -1: must be 1 or more"},
            BadRun{"negative_warmup", nothing, {"--warmup", "-300"}, 2, "--warmup -300: must be 0 or more"},
            BadRun{"negative_log_interval",
                   nothing,
                   {"--log-interval", "-1"},
                   2,
                   "--log-interval -1: must be 1 or more"},
            BadRun{"negative_seed", nothing, {"--seed", "-1"}, 2, "--seed -1: must be 0 or more"},
            BadRun{"no_number",
                   nothing,
                   {"--epochs", "ten"},
                   2,
                   "the argument ('ten') for option '--epochs' is invalid; see ssd_train --help"},
            BadRun{"too_large_a_number",
                   nothing,
                   {"--epochs", "99999999999"},
                   2,
                   "the argument ('99999999999') for option '--epochs' is invalid; see ssd_train --help"},
            BadRun{"rate_not_finite",
                   nothing,
                   {"--learning-rate", "nan"},
                   2,
                   "--learning-rate nan: must be 0 or more"},
            BadRun{"flip_probability_above_one",
                   nothing,
                   {"--flip-probability", "2"},
                   2,
                   "flip probability 2: must be from 0 to 1"},
            BadRun{"a_word_too_many",
                   nothing,
                   {"--fp16", "/data"},
                   2,
                   "'/data' belongs to no option; the folder of shards is given as --data /data"},
            BadRun{"T7_02_no_gpu",
                   nothing,
                   {"--device", "cuda"},
                   1,
                   "--device cuda, but no GPU is visible on ..."}),
        testing::Values(1, 4)),
    name_of);

// The one thing that is found out in the middle of a run: which rank draws the picture is the order's choice.
TEST(DamagedPicture, T4_02_ends_all_ranks_and_names_image_and_shard) {
  const TemporaryFolder folder;
  fs::copy(packed_photos(), folder.path(),
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  const auto shard = folder.path() / "train-00000-of-00001.h5";
  const auto record = ShardSet::open(folder.path(), Split::train).records()[2];
  auto text = text_of(shard);
  text[record.byte_offset + record.byte_count / 2] ^= 1;
  write_text(shard, text);
  const auto run = run_ranks(4, {"--data", folder.path().string(), "--device", "cpu", "--backbone",
                                 "resnet18", "--batch-size", "2", "--epochs", "1", "--evaluation", "none"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_THAT(run.err,
              testing::HasSubstr(fmt::format("error: shard '{}': the picture of image {} ('{}')",
                                             shard.string(), record.image_id.value(), record.file_name)));
}

}  // namespace
}  // namespace ssd
