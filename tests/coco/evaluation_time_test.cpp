// An evaluation of the size of COCO's: 5,000 images with 7 boxes and 200 detections each, 80 classes.
#include <gtest/gtest.h>

#include <ctime>

#include "coco/evaluate.hpp"
#include "core/random.hpp"

namespace ssd {
namespace {

constexpr int kImages = 5000, kBoxes = 7, kDetections = 200, kClasses = 80;
constexpr double kSecondsAtMost = 10;  // of one core; pycocotools takes minutes

BoxXywh draw_box(RandomStream& random) {
  return {random.uniform() * 400, random.uniform() * 300, 1 + random.uniform() * 200,
          1 + random.uniform() * 150};
}

CategoryId draw_class(RandomStream& random) {
  return CategoryId(1 + random.below(kClasses));
}

TEST(EvaluationTime, T3_16_of_5000_images_with_200_detections_each_is_seconds) {
  RandomStream random(1, RandomPurpose::test, 0, 0);
  AnnotationSet set;
  std::vector<Detection> detections;
  for (int i = 1; i <= kClasses; ++i) set.categories.push_back({CategoryId(i), std::to_string(i)});
  for (int i = 1; i <= kImages; ++i) {
    set.images.push_back({ImageId(i), {}, 640, 480});
    for (int k = 0; k < kBoxes; ++k) {
      const auto box = draw_box(random);
      set.annotations.push_back({static_cast<std::int64_t>(set.annotations.size()) + 1, ImageId(i),
                                 draw_class(random), box, box[2] * box[3], false});
    }
    for (int k = 0; k < kDetections; ++k)
      detections.push_back({ImageId(i), draw_class(random), draw_box(random), random.uniform()});
  }
  const auto start = std::clock();
  const auto evaluation = evaluate({}, set, detections);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(evaluation.warnings.size(), 0U);
  EXPECT_LT(seconds, kSecondsAtMost);
}

}  // namespace
}  // namespace ssd
