#include "coco/evaluation_scope.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coco/id_index.hpp"
#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

AnnotationSet small_set() {
  AnnotationSet set;
  for (const int id : {30, 10, 20}) set.images.push_back({ImageId(id), "", 0, 0});
  for (const int id : {2, 1}) set.categories.push_back({CategoryId(id), ""});
  return set;
}
Annotation box(std::int64_t id, int image, int category) {
  return {id, ImageId(image), CategoryId(category), {0, 0, 5, 5}, 25, false};
}
std::vector<Detection> detections_of(std::vector<std::pair<int, int>> places) {
  std::vector<Detection> detections;
  for (const auto& [image, category] : places) {
    detections.push_back(
        {ImageId(image), CategoryId(category), {}, 0.01 * static_cast<double>(detections.size())});
  }
  return detections;
}

TEST(EvaluationScope, is_all_of_the_set_in_ascending_order_unless_some_are_wanted) {
  const auto set = small_set();
  const auto all = evaluation_scope(set);
  EXPECT_THAT(all.image_ids, ElementsAre(ImageId(10), ImageId(20), ImageId(30)));
  EXPECT_THAT(all.category_ids, ElementsAre(CategoryId(1), CategoryId(2)));
  const std::vector<ImageId> images{ImageId(30), ImageId(10), ImageId(30)};
  const std::vector<CategoryId> categories{CategoryId(2)};
  const auto some = evaluation_scope(set, images, categories);
  EXPECT_THAT(some.image_ids, ElementsAre(ImageId(10), ImageId(30)));
  EXPECT_THAT(some.category_ids, ElementsAre(CategoryId(2)));
  const std::vector<ImageId> wrong{ImageId(11)};
  EXPECT_EQ(message_of<Error>([&] { evaluation_scope(set, wrong); }),
            "evaluation: image 11 is not in the ground truth, which has 3");
}

TEST(EvaluationScope, shares_of_ranks_are_the_whole) {
  const std::vector<ImageId> ids{ImageId(1), ImageId(2), ImageId(3), ImageId(4), ImageId(5)};
  EXPECT_THAT(share_of(ids, 0, 2), ElementsAre(ImageId(1), ImageId(3), ImageId(5)));
  EXPECT_THAT(share_of(ids, 1, 2), ElementsAre(ImageId(2), ImageId(4)));
  EXPECT_TRUE(share_of(ids, 7, 8).empty());
}

// pycocotools asks for annotations by image and category, and takes the last of each id for them.
TEST(GroundTruthOfScope, replaces_annotations_of_one_id_before_images_are_left_out) {
  auto set = small_set();
  set.annotations = {box(5, 10, 1), box(6, 20, 2), box(5, 30, 1)};
  EvaluationScope scope{{ImageId(10), ImageId(20)}, {CategoryId(1), CategoryId(2)}};
  const auto truth = ground_truth_of({}, set, scope);
  ASSERT_EQ(truth.boxes.size(), 1U);  // annotation 5 is that of image 30
  EXPECT_EQ(truth.boxes[0].id, 6);

  set.annotations = {box(5, 10, 1), box(5, 20, 2)};
  scope.category_ids = {CategoryId(2)};
  EXPECT_EQ(ground_truth_of({}, set, scope).boxes.size(), 1U);
  EvaluationParameters agnostic;
  agnostic.use_categories = false;
  EXPECT_EQ(ground_truth_of(agnostic, set, scope).boxes.size(), 2U);
}

TEST(KeepDetections, keeps_the_scope_and_counts_what_the_set_does_not_have) {
  const auto set = small_set();
  const EvaluationScope scope{{ImageId(10), ImageId(20)}, {CategoryId(2)}};
  auto detections = detections_of({{10, 2}, {30, 2}, {10, 1}, {10, 9}, {11, 2}, {20, 2}, {30, 9}});
  const auto all = detections;
  const auto left_out = keep_detections(set, scope, UnknownImages::leave_out, detections);
  EXPECT_EQ(left_out.unknown_images, 1U);
  EXPECT_EQ(left_out.unknown_categories, 1U);  // that of image 30 is not looked at
  ASSERT_EQ(detections.size(), 2U);
  EXPECT_EQ(detections[0].score, all[0].score);
  EXPECT_EQ(detections[1].score, all[5].score);
  auto refused = all;
  EXPECT_THAT(message_of<Error>([&] { keep_detections(set, scope, UnknownImages::refuse, refused); }),
              HasSubstr("1 of 7 detections belong to images that are not in the ground truth (ids 11)"));
}

TEST(IdIndex, finds_every_id_and_no_other) {
  std::vector<ImageId> ids;
  for (std::int64_t i = -500; i < 500; ++i) ids.emplace_back(i * 1000003);
  ids.push_back(ids.front());
  const IdIndex<ImageId> index(ids);
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) EXPECT_EQ(index.place_of(ids[i]), i);
  EXPECT_FALSE(index.has(ImageId(1)));
  EXPECT_FALSE(IdIndex<ImageId>({}).has(ImageId(0)));
}

}  // namespace
}  // namespace ssd
