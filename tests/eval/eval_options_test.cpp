#include "eval/eval_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "eval/wanted.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ParsedEvalOptions parse(std::vector<const char*> words) {
  words.insert(words.begin(), "ssd_eval");
  return parse_eval_options(static_cast<int>(words.size()), words.data());
}

EvalOptions options_of(std::vector<const char*> words) {
  words.insert(words.begin(), {"gt.json", "dt.json"});
  return *parse(std::move(words)).options;
}

std::string usage_error_of(std::vector<const char*> words) {
  return message_of<UsageError>([&] { options_of(std::move(words)); });
}

TEST(EvalOptions, without_any_measure_what_pycocotools_does) {
  const auto options = options_of({});
  EXPECT_EQ(options.ground_truth, "gt.json");
  EXPECT_EQ(options.results, "dt.json");
  const EvaluationParameters defaults;
  EXPECT_EQ(options.parameters.iou_thresholds, defaults.iou_thresholds);
  EXPECT_EQ(options.parameters.recall_thresholds, defaults.recall_thresholds);
  EXPECT_EQ(options.parameters.max_detections, defaults.max_detections);
  EXPECT_TRUE(options.parameters.use_categories);
  ASSERT_EQ(options.parameters.area_ranges.size(), defaults.area_ranges.size());
  for (std::size_t a = 0; a < defaults.area_ranges.size(); ++a) {
    EXPECT_EQ(options.parameters.area_ranges[a].label, defaults.area_ranges[a].label);
    EXPECT_EQ(options.parameters.area_ranges[a].low, defaults.area_ranges[a].low);
    EXPECT_EQ(options.parameters.area_ranges[a].high, defaults.area_ranges[a].high);
  }
}

TEST(EvalOptions, are_all_taken) {
  const auto options = options_of({"--max-dets",
                                   "1,5,300",
                                   "--iou-thresholds",
                                   "0.5,0.75",
                                   "--recall-thresholds",
                                   "0:1:11",
                                   "--area-ranges",
                                   "all:0:1e10,tiny:0:64.5",
                                   "--categories",
                                   "cat,3",
                                   "--images=-1,5",
                                   "--class-agnostic",
                                   "--ignore-unknown",
                                   "--per-category",
                                   "--json",
                                   "o.json",
                                   "--arrays",
                                   "--plot",
                                   "o.svg",
                                   "--split",
                                   "train",
                                   "--threads",
                                   "3"});
  EXPECT_THAT(options.parameters.max_detections, ElementsAre(1, 5, 300));
  EXPECT_THAT(options.parameters.iou_thresholds, ElementsAre(0.5, 0.75));
  EXPECT_EQ(options.parameters.recall_thresholds, linspace(0, 1, 11));
  ASSERT_EQ(options.parameters.area_ranges.size(), 2U);
  EXPECT_EQ(options.parameters.area_ranges[1].label, "tiny");
  EXPECT_EQ(options.parameters.area_ranges[1].high, 64.5);
  EXPECT_THAT(options.categories, ElementsAre("cat", "3"));
  EXPECT_EQ(options.images, "-1,5");
  EXPECT_FALSE(options.parameters.use_categories);
  EXPECT_TRUE(options.ignores_unknown_images && options.shows_categories && options.json_has_arrays);
  EXPECT_EQ(options.json, "o.json");
  EXPECT_EQ(options.plot, "o.svg");
  EXPECT_EQ(options.split, Split::train);
  EXPECT_EQ(options.threads, 3);
}

TEST(EvalOptions, that_are_wrong_are_named_with_their_value) {
  EXPECT_EQ(usage_error_of({"--max-dets", "1,10"}), "--max-dets 1,10: must be three numbers, as in 1,10,100");
  EXPECT_EQ(usage_error_of({"--max-dets", "1,x,100"}), "--max-dets: 'x' is not a whole number");
  EXPECT_THAT(usage_error_of({"--max-dets", "10,1,100"}), HasSubstr("in ascending order"));
  EXPECT_EQ(usage_error_of({"--iou-thresholds", "0.5,"}), "--iou-thresholds: '' is not a number");
  EXPECT_THAT(usage_error_of({"--iou-thresholds", "nan"}), HasSubstr("finite numbers"));
  EXPECT_EQ(usage_error_of({"--iou-thresholds", "0.5:0.9:1"}),
            "--iou-thresholds 0.5:0.9:1: its count must be from 2 to 10000");
  EXPECT_THAT(usage_error_of({"--recall-thresholds", "0.5,0.1"}), HasSubstr("ascending"));
  EXPECT_EQ(usage_error_of({"--area-ranges", "all"}),
            "--area-ranges: 'all' is not NAME:LOW:HIGH, as in small:0:1024");
  EXPECT_THAT(usage_error_of({"--area-ranges", "all:5:1"}), HasSubstr("goes from 5 to 1"));
  EXPECT_EQ(usage_error_of({"--arrays"}), "--arrays goes with --json FILE");
  EXPECT_EQ(usage_error_of({"--split", "test"}), "--split 'test': not one of val, train");
  EXPECT_EQ(usage_error_of({"--threads", "-1"}), "--threads -1: must be from 0 (all cores) to 1024");
  EXPECT_THAT(usage_error_of({"--per"}), HasSubstr("see ssd_eval --help"));
  EXPECT_THAT(usage_error_of({"third.json"}), HasSubstr("3 files given"));
  EXPECT_THAT(message_of<UsageError>([] { parse({}); }), HasSubstr("0 files given"));
}

TEST(EvalOptions, help_and_version_are_texts) {
  EXPECT_THAT(parse({"--help"}).text, HasSubstr("--max-dets A,B,C (=1,10,100)"));
  EXPECT_THAT(parse({"--version"}).text, testing::StartsWith("ssd_eval "));
}

TEST(WantedImages, come_from_the_text_or_from_a_file) {
  EXPECT_TRUE(wanted_images("").empty());
  EXPECT_THAT(wanted_images("5,-1 7"), ElementsAre(ImageId(5), ImageId(-1), ImageId(7)));
  const TemporaryFolder folder;
  const auto file = folder.path() / "ids.txt";
  write_text(file, "1\n22\r\n333\n");
  EXPECT_THAT(wanted_images(file), ElementsAre(ImageId(1), ImageId(22), ImageId(333)));
  write_text(file, "1\nx2\n");
  EXPECT_THAT(message_of<UsageError>([&] { wanted_images(file); }),
              HasSubstr("'x2' in it is not an image id"));
  write_text(file, " \n");
  EXPECT_THAT(message_of<UsageError>([&] { wanted_images(file); }), HasSubstr("there is no image id in it"));
  EXPECT_EQ(message_of<UsageError>([&] { wanted_images("no.txt"); }),
            "--images: 'no.txt' is not an image id, nor 'no.txt' a file of them");
}

TEST(WantedCategories, are_names_or_ids) {
  AnnotationSet set;
  set.categories = {{CategoryId(3), "cat"}, {CategoryId(1), "3"}};
  EXPECT_THAT(wanted_categories({"cat", "1", "3"}, set),
              ElementsAre(CategoryId(3), CategoryId(1), CategoryId(1)));
  EXPECT_EQ(message_of<UsageError>([&] { wanted_categories({"dog"}, set); }),
            "--categories: 'dog' is not a category of the ground truth");
}

}  // namespace
}  // namespace ssd
