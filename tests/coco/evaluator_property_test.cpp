// Random small sets, full of what is rare in real ones: ties, crowds, boxes on a coarse grid (so that IoUs
// fall on thresholds), areas on the borders of size classes, ids used twice, id 0, classes and images without
// boxes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "coco/evaluate.hpp"
#include "core/random.hpp"
#include "evaluate_in_parts.hpp"
#include "reference_evaluator.hpp"

namespace ssd {
namespace {

class RandomCase {
 public:
  explicit RandomCase(std::uint32_t number) : random_(1, RandomPurpose::test, number, 0) {
    make_parameters();
    const auto image_count = 1 + random_.below(8);
    const auto category_count = 1 + random_.below(4);
    for (std::uint32_t i = 0; i < image_count; ++i) {
      const std::int64_t id = (i * 7 + 3) % 11 - 2;  // out of order, one below 0
      set.images.push_back({ImageId(id), "", 0, 0});
    }
    for (std::uint32_t k = 0; k < category_count; ++k)
      set.categories.push_back({CategoryId((k * 5 + 2) % 7), ""});
    make_annotations();
    make_detections();
  }

  EvaluationParameters parameters;
  AnnotationSet set;
  std::vector<Detection> detections;

 private:
  void make_parameters() {
    if (random_.below(2) == 0) parameters.max_detections = {1, 2, static_cast<int>(3 + random_.below(4))};
    if (random_.below(4) == 0) parameters.iou_thresholds = {0, 0.5, 1.0};
    if (random_.below(8) == 0) parameters.iou_thresholds = {0.75, 0.5, 0.95, 0.5};  // in no order
    if (random_.below(4) == 0) parameters.recall_thresholds = {0, 1.0 / 3, 0.5, 2.0 / 3, 0.7, 1.0, 1.5};
    if (random_.below(4) == 0) {
      parameters.area_ranges.push_back({"tiny", 0, 0});
      parameters.area_ranges.push_back({"exactly 1024", 1024, 1024});
      parameters.area_ranges.push_back(
          {"some", 100, 2000});  // 7 ranges of 10 thresholds: more than one word of bits
    }
  }

  template <class Entries>
  auto pick_id(const Entries& entries) {
    return entries[random_.below(static_cast<std::uint32_t>(entries.size()))].id;
  }

  BoxXywh random_box() {
    if (random_.below(200) == 0) return {0, 0, 1e200, 1e200};  // of which the IoU is NaN
    if (random_.below(200) == 0) return {0, 0, 1e-200, 1e-200};
    const double step = random_.below(3) == 0 ? 1 : 8;
    const auto side = [&] { return step * random_.below(14); };  // now and then 0
    return {step * random_.below(6), step * random_.below(6), side(), side()};
  }

  void make_annotations() {
    const bool has_repeated_ids = random_.below(4) == 0;
    const bool has_id_0 = random_.below(4) == 0;
    const auto count = random_.below(25);
    for (std::uint32_t i = 0; i < count; ++i) {
      Annotation annotation;
      annotation.id = has_repeated_ids ? 1 + random_.below(15) : i + (has_id_0 ? 0 : 1);
      annotation.image_id = pick_id(set.images);
      annotation.category_id = pick_id(set.categories);
      annotation.bbox_xywh = random_box();
      annotation.area = annotation.bbox_xywh[2] * annotation.bbox_xywh[3];
      if (random_.below(3) == 0) annotation.area = 1024 + 0.5 * (random_.below(3) - 1.0);
      if (random_.below(9) == 0) annotation.area = 9216;
      annotation.is_crowd = random_.below(6) == 0;
      set.annotations.push_back(annotation);
    }
  }

  void make_detections() {
    const auto count = random_.below(60);
    for (std::uint32_t i = 0; i < count; ++i) {
      Detection detection;
      detection.image_id = pick_id(set.images);
      detection.category_id = pick_id(set.categories);
      detection.bbox_xywh = random_box();
      // Most detections lie on or near a box of their image.
      if (!set.annotations.empty() && random_.below(4) != 0) {
        const auto& near = set.annotations[random_.below(static_cast<std::uint32_t>(set.annotations.size()))];
        detection.image_id = near.image_id;
        if (random_.below(8) != 0) detection.category_id = near.category_id;
        detection.bbox_xywh = near.bbox_xywh;
        detection.bbox_xywh[random_.below(4)] += random_.below(4);
      }
      detection.score = random_.below(3) == 0 ? random_.uniform() : 0.1 * random_.below(6);
      detections.push_back(detection);
    }
  }

  RandomStream random_;
};

std::uint32_t case_count() {
  return std::getenv("SSD_TEST_LONG") != nullptr ? 50000 : 3000;
}

// Boxes of all categories as of one: by category, then in the order of the file (pycocotools with useCats =
// 0).
template <class Box>
std::vector<Box> without_categories(std::vector<Box> boxes) {
  std::stable_sort(boxes.begin(), boxes.end(),
                   [](const Box& a, const Box& b) { return a.category_id < b.category_id; });
  for (auto& box : boxes) box.category_id = CategoryId(-1);
  return boxes;
}

TEST(Evaluator, without_categories_agrees_with_a_plain_evaluator_of_one_category) {
  for (std::uint32_t number = 0; number < case_count() / 4; ++number) {
    RandomCase random(number);
    // The plain evaluator looks categories up by id, so ids used twice would mix them before they are
    // dropped.
    for (std::size_t i = 0; i < random.set.annotations.size(); ++i)
      random.set.annotations[i].id = static_cast<std::int64_t>(i) + 1;
    auto one_category = random.set;
    one_category.categories = {{CategoryId(-1), ""}};
    one_category.annotations = without_categories(random.set.annotations);
    const auto expected =
        reference_evaluation(random.parameters, one_category, without_categories(random.detections));
    auto parameters = random.parameters;
    parameters.use_categories = false;
    const auto result =
        evaluate(parameters, random.set, random.detections, 1 + static_cast<int>(number % 3)).result;
    ASSERT_EQ(result.precision, expected.precision) << "case " << number;
    ASSERT_EQ(result.recall, expected.recall) << "case " << number;
    ASSERT_EQ(result.scores, expected.scores) << "case " << number;
    ASSERT_EQ(evaluate_in_parts(parameters, random.set, random.detections, 1 + number % 5).scores,
              expected.scores);
  }
}

TEST(Evaluator, agrees_with_a_plain_evaluator_in_every_bit) {
  std::size_t measured_cells = 0;
  for (std::uint32_t number = 0; number < case_count(); ++number) {
    const RandomCase random(number);
    const auto expected = reference_evaluation(random.parameters, random.set, random.detections);
    const auto whole =
        evaluate(random.parameters, random.set, random.detections, 1 + static_cast<int>(number % 3)).result;
    ASSERT_EQ(whole.precision, expected.precision) << "case " << number;
    ASSERT_EQ(whole.recall, expected.recall) << "case " << number;
    ASSERT_EQ(whole.scores, expected.scores) << "case " << number;
    for (const double recall : expected.recall) measured_cells += recall > 0 && recall < 1 ? 1 : 0;

    const auto merged = evaluate_in_parts(random.parameters, random.set, random.detections, 1 + number % 5);
    ASSERT_EQ(merged.precision, whole.precision) << "case " << number;
    ASSERT_EQ(merged.recall, whole.recall) << "case " << number;
    ASSERT_EQ(merged.scores, whole.scores) << "case " << number;
  }
  EXPECT_GT(measured_cells, 50 * case_count());  // the cases do have something to measure
}

}  // namespace
}  // namespace ssd
