#include "coco/summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coco/evaluate.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

// Three categories: found, missed, and one without ground truth.
struct Example {
  AnnotationSet set;
  std::vector<Detection> detections;

  Example() {
    set.categories = {{CategoryId(7), "zebra"}, {CategoryId(2), "cat"}, {CategoryId(5), "a long name"}};
    set.images = {{ImageId(1), "a.jpg", 640, 480}};
    set.annotations = {{1, ImageId(1), CategoryId(2), {10, 10, 40, 40}, 1600, false},
                       {2, ImageId(1), CategoryId(7), {10, 10, 40, 40}, 1600, false},
                       {3, ImageId(1), CategoryId(2), {100, 10, 40, 40}, 1600, true}};
    detections = {{ImageId(1), CategoryId(2), {10, 10, 40, 40}, 0.9},
                  {ImageId(1), CategoryId(5), {0, 0, 9, 9}, 0.8}};
  }
};

TEST(Summary, of_categories_is_in_the_order_of_ids_and_agrees_with_the_whole) {
  const Example example;
  const auto result = evaluate({}, example.set, example.detections).result;
  const auto categories = summarize_categories(result, example.set.categories);
  ASSERT_EQ(categories.size(), 3U);
  EXPECT_EQ(categories[0].name, "cat");
  EXPECT_EQ(categories[0].box_count, 1);    // a crowd is no box to find
  EXPECT_NEAR(categories[0].ap, 1, 1e-15);  // tp / (tp + 2^-52)
  EXPECT_NEAR(categories[0].ap50, 1, 1e-15);
  EXPECT_EQ(categories[1].name, "a long name");
  EXPECT_EQ(categories[1].ap, -1);
  EXPECT_EQ(categories[1].box_count, 0);
  EXPECT_EQ(categories[2].name, "zebra");
  EXPECT_EQ(categories[2].ap, 0);
  EXPECT_EQ(categories[2].ap50, 0);
  // The mean over the categories that have boxes.
  EXPECT_NEAR(summarize(result)[0], (categories[0].ap + categories[2].ap) / 2, 1e-15);
}

TEST(Summary, T3_22_table_of_categories_shows_a_dash_where_there_is_no_ground_truth) {
  const Example example;
  const auto result = evaluate({}, example.set, example.detections).result;
  EXPECT_EQ(format_category_table(summarize_categories(result, example.set.categories)),
            "category         AP    AP50    boxes\n"
            "cat           1.000   1.000        1\n"
            "a long name       -       -        0\n"
            "zebra         0.000   0.000        1\n");
}

TEST(Summary, lines_are_those_of_pycocotools) {
  Summary summary{};
  summary.fill(-1);
  summary[0] = 0.5045806987249628;
  summary[7] = 1;
  EXPECT_EQ(format_summary({}, summary),
            " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.505\n"
            " Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=100 ] = -1.000\n"
            " Average Precision  (AP) @[ IoU=0.75      | area=   all | maxDets=100 ] = -1.000\n"
            " Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = -1.000\n"
            " Average Precision  (AP) @[ IoU=0.50:0.95 | area=medium | maxDets=100 ] = -1.000\n"
            " Average Precision  (AP) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = -1.000\n"
            " Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=  1 ] = -1.000\n"
            " Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets= 10 ] = 1.000\n"
            " Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = -1.000\n"
            " Average Recall     (AR) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = -1.000\n"
            " Average Recall     (AR) @[ IoU=0.50:0.95 | area=medium | maxDets=100 ] = -1.000\n"
            " Average Recall     (AR) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = -1.000\n");
}

TEST(Summary, other_limits_of_detections_do_not_turn_to_minus_one) {
  const Example example;
  EvaluationParameters parameters;
  parameters.max_detections = {5, 50, 300};
  const auto summary = summarize(evaluate(parameters, example.set, example.detections).result);
  EXPECT_NEAR(summary[0], 0.5, 1e-15);
  EXPECT_NEAR(summary[8], 0.5, 1e-15);
  EXPECT_THAT(format_summary(parameters, summary), testing::HasSubstr("maxDets=300 ] = 0.500"));
}

TEST(Summary, needs_three_limits_of_detections) {
  const Example example;
  EvaluationParameters parameters;
  parameters.max_detections = {100};
  EXPECT_THROW(summarize(evaluate(parameters, example.set, example.detections).result), Error);
}

// numpy 2.4.6: (1.0 / numpy.arange(1, n + 1)).sum(). A sum from left to right differs for n = 128, 129, 300,
// 1000, 12345.
TEST(PairwiseSum, has_the_bits_of_numpy) {
  const auto harmonic = [](int n) {
    std::vector<double> values;
    for (int i = 1; i <= n; ++i) values.push_back(1.0 / i);
    return pairwise_sum(values);
  };
  EXPECT_EQ(harmonic(0), 0.0);
  EXPECT_EQ(harmonic(1), 0x1.0000000000000p+0);
  EXPECT_EQ(harmonic(7), 0x1.4be2be2be2be2p+1);
  EXPECT_EQ(harmonic(8), 0x1.5be2be2be2be2p+1);
  EXPECT_EQ(harmonic(9), 0x1.6a1ba1ba1ba1bp+1);
  EXPECT_EQ(harmonic(17), 0x1.b84341cecee4cp+1);
  EXPECT_EQ(harmonic(128), 0x1.5bb8ae9541ca7p+2);
  EXPECT_EQ(harmonic(129), 0x1.5c37b09149ba9p+2);
  EXPECT_EQ(harmonic(300), 0x1.92172a3e6965ap+2);
  EXPECT_EQ(harmonic(1000), 0x1.df11f45f4e61ap+2);
  EXPECT_EQ(harmonic(12345), 0x1.3ff1c4577de48p+3);
}

}  // namespace
}  // namespace ssd
