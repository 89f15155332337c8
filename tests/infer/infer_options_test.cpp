#include "infer/infer_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

ParsedInferOptions parse(std::vector<const char*> words) {
  words.insert(words.begin(), "ssd_infer");
  return parse_infer_options(static_cast<int>(words.size()), words.data());
}

TEST(InferOptionsTest, defaults_are_those_of_the_references_inference_script) {
  const auto options = parse({"--checkpoint", "a.pt", "--draw", "out", "x.jpg"}).options.value();
  EXPECT_EQ(options.score_threshold, 0.3F);
  EXPECT_EQ(options.max_detections, 20);
  EXPECT_EQ(options.nms_iou, 0.5F);
  EXPECT_EQ(options.backbone, std::nullopt);  // the file says it
  EXPECT_EQ(options.draw_format, ImageFormat::jpeg);
  EXPECT_FALSE(options.use_half);
  EXPECT_TRUE(options.output.empty());
  EXPECT_TRUE(options.truth.empty());
}

TEST(InferOptionsTest, pictures_may_stand_anywhere_and_second_names_mean_the_same) {
  const auto options =
      parse({"a", "--bs=3", "--amp", "b", "--output", "o.json", "--checkpoint", "c.pt", "c"}).options.value();
  EXPECT_THAT(options.inputs, testing::ElementsAre("a", "b", "c"));
  EXPECT_EQ(options.batch_size, 3);
  EXPECT_TRUE(options.use_half);
}

TEST(InferOptionsTest, help_and_version_need_nothing_else) {
  const auto help = parse({"--help"});
  EXPECT_FALSE(help.options);
  for (const char* option :
       {"--checkpoint", "--backbone", "--device", "--fp16", "--batch-size", "--score-threshold",
        "--max-detections", "--nms-iou", "--output", "--draw", "--draw-format", "--truth"}) {
    EXPECT_THAT(help.text, testing::HasSubstr(option));
  }
  EXPECT_THAT(parse({"--version"}).text, testing::StartsWith("ssd_infer "));
}

TEST(InferOptionsTest, wrong_use_is_one_line_that_names_option_and_value) {
  const auto message = [](std::vector<const char*> more) {
    std::vector<const char*> words{"--checkpoint", "a.pt", "--draw", "out", "x.jpg"};
    words.insert(words.end(), more.begin(), more.end());
    return message_of<UsageError>([&] { parse(words); });
  };
  EXPECT_EQ(message({"--score-threshold", "0.04"}),
            "--score-threshold 0.04: must be from 0.05 to less than 1");
  EXPECT_EQ(message({"--score-threshold", "nan"}), "--score-threshold nan: must be from 0.05 to less than 1");
  EXPECT_EQ(message({"--max-detections", "0"}), "--max-detections 0: must be 1 or more");
  EXPECT_EQ(message({"--nms-iou", "1.5"}), "--nms-iou 1.5: must be above 0 and at most 1");
  EXPECT_EQ(message({"--batch-size", "0"}), "--batch-size 0: must be 1 or more");
  EXPECT_EQ(message({"--draw-format", "gif"}), "--draw-format 'gif': not one of jpeg, png");
  EXPECT_EQ(message({"--device", "tpu"}), "--device 'tpu': not one of auto, cuda, cpu");
  EXPECT_EQ(message({"--draw-f", "png"}), "unrecognised option '--draw-f'; see ssd_infer --help");
  EXPECT_EQ(message_of<UsageError>([] {
              parse({"--checkpoint", "a.pt", "x.jpg"});
            }),
            "nothing to do: give --output FILE, --draw DIR or both");
  EXPECT_EQ(message_of<UsageError>([] {
              parse({"--draw", "out", "x.jpg"});
            }),
            "no --checkpoint FILE; see ssd_infer --help");
  EXPECT_EQ(message_of<UsageError>([] {
              parse({"--draw", "out", "--checkpoint", "a.pt"});
            }),
            "no pictures; name files or folders; see ssd_infer --help");
}

}  // namespace
}  // namespace ssd
