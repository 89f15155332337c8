#include "boxes/nms.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/random.hpp"

namespace ssd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Scene {
  std::vector<BoxLtrb> boxes;
  std::vector<float> scores;
  std::vector<std::int32_t> labels;

  void add(BoxLtrb box, float score, std::int32_t label = 1) {
    boxes.push_back(box);
    scores.push_back(score);
    labels.push_back(label);
  }
  std::vector<std::size_t> suppress(const NmsOptions& options = {}) const {
    return ssd::suppress({boxes, scores, labels}, options);
  }
};

constexpr BoxLtrb kUnit = {0, 0, 1, 1};

TEST(Nms, puts_out_nothing_for_nothing) {
  EXPECT_THAT(Scene().suppress(), IsEmpty());
}

TEST(Nms, keeps_the_better_of_two_equal_boxes) {
  Scene scene;
  scene.add(kUnit, 0.5F);
  scene.add(kUnit, 0.9F);
  EXPECT_THAT(scene.suppress(), ElementsAre(1));
}

TEST(Nms, T1_09_suppresses_at_an_iou_of_exactly_one_half_and_not_one_step_below) {
  const BoxLtrb half = {0, 0, 1, 0.5F};
  const BoxLtrb below = {0, 0, 1, std::nextafter(0.5F, 0.0F)};
  ASSERT_EQ(iou(kUnit, half), 0.5F);
  ASSERT_LT(iou(kUnit, below), 0.5F);
  Scene scene;
  scene.add(kUnit, 0.9F);
  scene.add(half, 0.8F);
  EXPECT_THAT(scene.suppress(), ElementsAre(0));
  scene.boxes[1] = below;
  EXPECT_THAT(scene.suppress(), ElementsAre(0, 1));
}

TEST(Nms, does_not_suppress_across_classes) {
  Scene scene;
  scene.add(kUnit, 0.5F, 7);
  scene.add(kUnit, 0.9F, 3);
  EXPECT_THAT(scene.suppress(), ElementsAre(1, 0));
}

TEST(Nms, lets_a_suppressed_box_suppress_nothing) {
  Scene scene;
  scene.add({0, 0, 1, 1}, 0.9F);
  scene.add({0.25F, 0, 1.25F, 1}, 0.8F);  // IoU .6 with both neighbours
  scene.add({0.5F, 0, 1.5F, 1}, 0.7F);    // IoU 1/3 with the first
  EXPECT_THAT(scene.suppress(), ElementsAre(0, 2));
}

TEST(Nms, takes_the_later_of_equal_scores_first) {
  Scene scene;
  scene.add(kUnit, 0.5F);
  scene.add(kUnit, 0.5F);
  scene.add({2, 2, 3, 3}, 0.5F);
  EXPECT_THAT(scene.suppress(), ElementsAre(2, 1));
}

TEST(Nms, puts_out_equal_scores_by_class) {
  Scene scene;
  scene.add(kUnit, 0.5F, 9);
  scene.add(kUnit, 0.5F, 2);
  scene.add(kUnit, 0.5F, 5);
  EXPECT_THAT(scene.suppress(), ElementsAre(1, 2, 0));
}

TEST(Nms, cuts_a_class_before_suppression) {
  Scene scene;
  for (int i = 0; i < 3; ++i) scene.add(kUnit, 0.9F - 0.1F * static_cast<float>(i));
  scene.add({2, 2, 3, 3}, 0.1F);  // would stay, but is the fourth of its class
  EXPECT_THAT(scene.suppress({.candidates_per_class = 3}), ElementsAre(0));
  EXPECT_THAT(scene.suppress({.candidates_per_class = 4}), ElementsAre(0, 3));
}

TEST(Nms, cuts_all_classes_together_after_suppression) {
  Scene scene;
  scene.add(kUnit, 0.2F, 1);
  scene.add(kUnit, 0.9F, 2);
  scene.add(kUnit, 0.5F, 3);
  EXPECT_THAT(scene.suppress({.max_output = 2}), ElementsAre(1, 2));
}

TEST(Nms, drops_what_has_no_iou) {
  const float infinity = std::numeric_limits<float>::infinity();
  Scene scene;
  scene.add({-infinity, 0, infinity, 1}, 0.9F);  // IoU with any box: finite / infinite
  scene.add({0, 0, 0, 0}, 0.8F);
  scene.add({0, 0, 0, 0}, 0.7F);  // 0/0 with the one before
  EXPECT_THAT(scene.suppress(), ElementsAre(0, 1));
}

TEST(Nms, agrees_with_the_plain_definition_on_random_boxes) {
  RandomStream random(7, RandomPurpose::test, 0, 0);
  Scene scene;
  for (int i = 0; i < 600; ++i) {
    const auto left = static_cast<float>(random.uniform(0, 0.8)),
               top = static_cast<float>(random.uniform(0, 0.8));
    scene.add({left, top, left + static_cast<float>(random.uniform(0.05, 0.5)),
               top + static_cast<float>(random.uniform(0.05, 0.5))},
              static_cast<float>(random.uniform()), static_cast<std::int32_t>(random.below(4)));
  }
  const NmsOptions options{.candidates_per_class = 1000, .max_output = 1000};
  const std::vector<std::size_t> kept = scene.suppress(options);
  for (std::size_t i = 0; i < scene.boxes.size(); ++i) {
    const bool is_kept = std::find(kept.begin(), kept.end(), i) != kept.end();
    const bool is_met = std::any_of(kept.begin(), kept.end(), [&](std::size_t k) {
      return scene.labels[k] == scene.labels[i] && scene.scores[k] > scene.scores[i] &&
             !(iou(scene.boxes[k], scene.boxes[i]) < 0.5F);
    });
    EXPECT_EQ(is_kept, !is_met) << "box " << i;
  }
  EXPECT_LT(kept.size(), scene.boxes.size());
}

TEST(Nms, refuses_columns_of_unequal_length) {
  Scene scene;
  scene.add(kUnit, 0.5F);
  scene.labels.clear();
  EXPECT_THROW(scene.suppress(), ContractError);
}

}  // namespace
}  // namespace ssd
