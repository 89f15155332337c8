#include "train/train_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "train/compute_plan.hpp"

namespace ssd {
namespace {

ParsedTrainOptions parse(std::vector<const char*> words) {
  words.insert(words.begin(), "ssd_train");
  return parse_train_options(static_cast<int>(words.size()), words.data());
}

TrainOptions options_of(std::vector<const char*> words) {
  return parse(std::move(words)).options.value();
}

TEST(TrainOptionsTest, defaults_are_those_of_the_reference) {
  const auto options = options_of({});
  EXPECT_EQ(options.epochs, 65);
  EXPECT_EQ(options.batch_size, 32);
  EXPECT_EQ(options.learning_rate, 2.6e-3);
  EXPECT_EQ(options.multistep, (std::vector<int>{43, 54}));
  EXPECT_EQ(options.evaluation, (std::vector<int>{21, 31, 37, 42, 48, 53, 59, 64}));
  EXPECT_EQ(options.backbone, std::nullopt);  // ResNet-50, where no checkpoint says another
  EXPECT_FALSE(options.use_half);
  EXPECT_FALSE(options.save_folder.has_value());
}

TEST(TrainOptionsTest, U17_a_backbone_that_is_asked_for_is_told_from_the_default) {
  EXPECT_EQ(options_of({"--backbone", "resnet50"}).backbone, Backbone::resnet50);
  EXPECT_EQ(options_of({"--backbone", "resnet18"}).backbone, Backbone::resnet18);
  EXPECT_THAT(options_of({}).configuration, testing::HasSubstr("\nbackbone = resnet50\n"));
}

TEST(TrainOptionsTest, short_and_second_names_mean_the_same) {
  const auto options = options_of({"-d", "/x", "-e", "3", "--bs", "4", "--ebs=5", "--lr", "0.04", "--wd", "0",
                                   "-m", ".8", "-s", "7", "--amp"});
  EXPECT_EQ(options.data, "/x");
  EXPECT_EQ(options.epochs, 3);
  EXPECT_EQ(options.batch_size, 4);
  EXPECT_EQ(options.evaluation_batch_size, 5);
  EXPECT_EQ(options.learning_rate, .04);
  EXPECT_EQ(options.weight_decay, 0);
  EXPECT_EQ(options.momentum, .8);
  EXPECT_EQ(options.seed, 7U);
  EXPECT_TRUE(options.use_half);
}

TEST(TrainOptionsTest, save_takes_a_folder_or_nothing) {
  EXPECT_EQ(options_of({"--save"}).save_folder, "./models");
  EXPECT_EQ(options_of({"--save", "--fp16"}).save_folder, "./models");
  EXPECT_EQ(options_of({"--save", "out", "--fp16"}).save_folder, "out");
  EXPECT_EQ(options_of({"--save=out"}).save_folder, "out");
}

TEST(TrainOptionsTest, lists_of_epochs_and_ranges_with_negative_numbers_are_read) {
  const auto options =
      options_of({"--epochs", "5", "--evaluation", "1", "last", "--multistep", "none", "--hue", "-18", "18"});
  EXPECT_EQ(options.evaluation, (std::vector<int>{1, 4}));
  EXPECT_TRUE(options.multistep.empty());
  EXPECT_EQ(options.augmentation.hue_degrees.low, -18);
  EXPECT_EQ(options_of({"--checkpoint", "a.pt", "b.pt", "--fp16"}).checkpoints.size(), 2U);
}

TEST(TrainOptionsTest, of_an_option_given_twice_the_later_counts) {
  const auto options =
      options_of({"--bs",   "64",           "--hue", "-1",           "1", "--save", "a",
                  "--fp16", "-d",           "/x",    "--evaluation", "1", "2",      "--batch-size=2",
                  "--hue",  "-3",           "3",     "--save",       "b", "--fp16", "--data",
                  "/y",     "--evaluation", "none"});
  EXPECT_EQ(options.batch_size, 2);
  EXPECT_EQ(options.augmentation.hue_degrees.low, -3);
  EXPECT_EQ(options.save_folder, "b");
  EXPECT_TRUE(options.use_half);
  EXPECT_EQ(options.data, "/y");
  EXPECT_TRUE(options.evaluation.empty());
}

TEST(TrainOptionsTest, of_options_that_contradict_each_other_the_later_counts) {
  EXPECT_FALSE(options_of({"--fp16", "--no-amp"}).use_half);
  EXPECT_TRUE(options_of({"--no-fp16", "--amp"}).use_half);
  EXPECT_FALSE(options_of({"--allow-tf32", "--no-allow-tf32"}).allow_tf32);
  EXPECT_EQ(options_of({"--device", "cuda", "--no-cuda"}).device, DeviceChoice::cpu);
  EXPECT_EQ(options_of({"--no-cuda", "--device", "cuda"}).device, DeviceChoice::cuda);
}

struct WrongUse {
  std::vector<const char*> words;
  const char* message;
};

class WrongUseTest : public testing::TestWithParam<WrongUse> {};

TEST_P(WrongUseTest, is_one_line_that_names_option_and_value) {
  try {
    parse(GetParam().words);
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), GetParam().message);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, WrongUseTest,
    testing::Values(
        WrongUse{{"--epochs", "-5"}, "--epochs -5: must be 0 or more"},
        WrongUse{{"--batch-size", "0"}, "--batch-size 0: must be 1 or more"},
        WrongUse{{"--bs", "1"},
                 "--batch-size 1: training needs 2 or more images per rank, since the last BatchNorm sees a "
                 "1x1 map"},
        WrongUse{{"--sav"}, "unrecognised option '--sav'; see ssd_train --help"},
        WrongUse{{"--backbone", "vgg"},
                 "--backbone 'vgg': not one of resnet18, resnet34, resnet50, resnet101, resnet152"},
        WrongUse{{"--mode", "test"},
                 "--mode 'test': not one of training, evaluation, benchmark-training, benchmark-inference"},
        WrongUse{{"--mode", "evaluation"},
                 "--mode evaluation: give the file to evaluate as --checkpoint FILE"},
        WrongUse{{"--evaluation", "21", "x"}, "--evaluation 'x': not a number"},
        WrongUse{{"--evaluation", "-3"}, "--evaluation -3: epochs count from 0"},
        WrongUse{{"/coco", "--fp16", "/data", "--fp16"},
                 "'/coco' belongs to no option; the folder of shards is given as --data /coco"},
        WrongUse{{"/coco"}, "'/coco' belongs to no option; the folder of shards is given as --data /coco"},
        WrongUse{{"--bucket-kib", "9000000000000000"},
                 "--bucket-kib 9000000000000000: must be from 1 to 1048576"},
        WrongUse{{"--gradient-type", "int8"}, "--gradient-type 'int8': not one of auto, fp16, bf16, fp32"},
        WrongUse{{"--hue", "1"}, "--hue: takes two numbers, low and high; here are 1"},
        WrongUse{{"--hue", "2", "1"}, "--hue 2 1: low is above high"},
        WrongUse{{"--seed", "-1"}, "--seed -1: must be 0 or more"},
        WrongUse{{"--lr", "inf"}, "--learning-rate inf: must be 0 or more"},
        WrongUse{{"--lr", "nan"}, "--learning-rate nan: must be 0 or more"},
        WrongUse{{"--epochs", "ten"},
                 "the argument ('ten') for option '--epochs' is invalid; see ssd_train --help"},
        WrongUse{{"--lr", "-1"}, "--learning-rate -1: must be 0 or more"}));

TEST(TrainOptionsTest, help_and_configuration_come_from_the_same_table) {
  const auto help = parse({"--help"}).text;
  const auto configuration = parse({"--print-config", "--bs", "64", "--fp16"}).text;
  for (const char* name :
       {"data", "batch-size", "learning-rate", "evaluation", "save", "num-workers", "hue"}) {
    EXPECT_THAT(help, testing::HasSubstr(std::string("--") + name));
    EXPECT_THAT(configuration, testing::HasSubstr(std::string(name) + " = "));
  }
  EXPECT_THAT(configuration, testing::HasSubstr("batch-size = 64\n"));
  EXPECT_THAT(configuration, testing::HasSubstr("\nfp16 = yes\n"));
  EXPECT_THAT(parse({"--version"}).text, testing::StartsWith("ssd_train "));
}

TEST(ComputePlanTest, half_precision_is_what_the_processor_has) {
  TrainOptions options;
  options.use_half = true;
  options.device = DeviceChoice::cpu;
  const RankPlacement one_core{0, 2, 1, 1, "node1"};
  auto plan = plan_compute(options, one_core, {true, "AMX"}, 0);
  EXPECT_EQ(plan.arena.compute_type, torch::kBFloat16);
  EXPECT_TRUE(plan.arena.channels_last);
  EXPECT_EQ(plan.wire_type, WireType::float16);
  EXPECT_EQ(plan.loss_scaling, LossScaling::dynamic);
  plan = plan_compute(options, one_core, {false, "AVX2"}, 0);
  EXPECT_EQ(plan.arena.compute_type, torch::kFloat);
  EXPECT_EQ(plan.wire_type, WireType::float16);
}

TEST(ComputePlanTest, more_than_one_compute_thread_leaves_cores_to_the_loader) {
  TrainOptions options;
  options.device = DeviceChoice::cpu;
  for (int cores = 1; cores <= 128; ++cores) {
    const auto plan = plan_compute(options, {0, 1, cores, cores, "node1"}, {}, 0);
    EXPECT_GE(plan.compute_threads, 1);
    EXPECT_GE(plan.loader_threads, 1);
    EXPECT_TRUE(plan.compute_threads == 1 || plan.compute_threads + plan.loader_threads <= cores) << cores;
  }
}

TEST(ComputePlanTest, T5_04_a_gpu_for_each_rank_or_an_error_that_says_so) {
  TrainOptions options;
  const RankPlacement third{3, 4, 8, 32, "node1"};
  EXPECT_EQ(plan_compute(options, third, {}, 8).device, torch::Device(torch::kCUDA, 3));
  EXPECT_EQ(plan_compute(options, third, {}, 1).device, torch::Device(torch::kCUDA, 0));
  EXPECT_THROW(plan_compute(options, third, {}, 2), Error);
  EXPECT_TRUE(plan_compute(options, third, {}, 0).device.is_cpu());
  options.device = DeviceChoice::cuda;
  EXPECT_THROW(plan_compute(options, third, {}, 0), Error);
}

}  // namespace
}  // namespace ssd
