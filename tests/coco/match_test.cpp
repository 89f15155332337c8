#include "coco/match.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "coco/accumulate.hpp"
#include "coco/evaluate.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Annotation truth(std::int64_t id, std::int64_t image, BoxXywh box) {
  return {id, ImageId(image), CategoryId(1), box, box[2] * box[3], false};
}
Detection detection(std::int64_t image, BoxXywh box, double score, std::int64_t category = 1) {
  return {ImageId(image), CategoryId(category), box, score};
}
constexpr BoxXywh kBox{10, 10, 40, 40};
constexpr BoxXywh kElsewhere{200, 200, 40, 40};
const std::vector<CategoryId> kCategories{CategoryId(1)};
const std::vector<ImageId> kImages{ImageId(1), ImageId(2)};

MatchOutcomes match(std::span<const Annotation> truths, std::span<const Detection> detections) {
  return match_images({}, {kCategories, kImages, truths, detections});
}

template <class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(EvaluationParameters, thresholds_are_the_doubles_of_numpy) {
  const EvaluationParameters parameters;
  // numpy.linspace(.5, .95, 10): all as written but one.
  EXPECT_THAT(parameters.iou_thresholds,
              ElementsAre(0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.8999999999999999, 0.95));
  ASSERT_EQ(parameters.recall_thresholds.size(), 101U);
  EXPECT_EQ(parameters.recall_thresholds[29], 0.29);
  EXPECT_EQ(parameters.recall_thresholds[35], 0.35000000000000003);
  EXPECT_EQ(parameters.recall_thresholds[57], 0.5700000000000001);
  EXPECT_EQ(parameters.recall_thresholds[100], 1.0);
}

TEST(EvaluationParameters, that_make_no_sense_are_refused) {
  EvaluationParameters parameters;
  parameters.validate();
  parameters.max_detections = {10, 1};
  EXPECT_THROW(parameters.validate(), Error);
  parameters = {};
  parameters.recall_thresholds = {0.5, 0.1};
  EXPECT_THROW(parameters.validate(), Error);
  parameters = {};
  parameters.iou_thresholds = {};
  EXPECT_THROW(parameters.validate(), Error);
  parameters = {};
  parameters.area_ranges[1].low = 2000;
  EXPECT_THROW(parameters.validate(), Error);
}

TEST(Match, outcomes_say_true_or_false_positive_for_each_area_and_threshold) {
  const std::vector<Annotation> truths{truth(1, 1, kBox)};
  const std::vector<Detection> detections{detection(1, kElsewhere, 0.5), detection(1, {10, 10, 40, 30}, 0.9)};
  const auto outcomes = match(truths, detections);
  EXPECT_THAT(outcomes.blocks, ElementsAre(OutcomeBlock{ImageId(1), 0, 2}));
  EXPECT_THAT(outcomes.scores, ElementsAre(0.9, 0.5));
  EXPECT_THAT(outcomes.ground_truth_counts, ElementsAre(1, 0, 1, 0));
  // Ranges 0 and 2 are "all" and "medium". The miss overlaps nothing and needs no bits.
  EXPECT_THAT(outcomes.states, ElementsAre(MatchOutcomes::kHasBits | 0b101, 0b101));
  // Bits 0-9 are area "all", 20-29 "medium". The IoU of 0.75 reaches six thresholds; a miss in another size
  // class is ignored there.
  const std::uint64_t reached = 0x3f | (std::uint64_t{0x3f} << 20);
  const std::uint64_t missed = 0x3c0 | (std::uint64_t{0x3c0} << 20);
  EXPECT_THAT(outcomes.bits, ElementsAre(reached, missed));
}

TEST(Match, images_and_categories_without_boxes_leave_no_block) {
  const auto outcomes = match({}, {});
  EXPECT_TRUE(outcomes.blocks.empty());
  EXPECT_EQ(outcomes.image_ids, kImages);
}

TEST(Match, T3_08_detections_of_unknown_images_are_refused_with_their_ids) {
  const std::vector<Detection> detections{detection(1, kBox, 0.9), detection(7, kBox, 0.8),
                                          detection(7, kBox, 0.7), detection(9, kBox, 0.6)};
  EXPECT_EQ(error_of([&] { match({}, detections); }),
            "3 of 4 detections belong to images that are not in the ground truth (ids 7, 9); do both come "
            "from the same "
            "set?");
}

TEST(Match, T3_13_what_is_not_finite_is_refused) {
  const double nan = std::nan("");
  const std::vector<Detection> bad_score{detection(1, kBox, 0.9), detection(2, kBox, nan)};
  EXPECT_EQ(error_of([&] { match({}, bad_score); }),
            "detection [1] of image 2: its score or box is not finite");
  const std::vector<Detection> bad_box{detection(2, {0, 0, INFINITY, 1}, 0.5)};
  EXPECT_EQ(error_of([&] { match({}, bad_box); }),
            "detection [0] of image 2: its score or box is not finite");
  const std::vector<Annotation> bad_truth{truth(4, 2, {0, nan, 1, 1})};
  EXPECT_EQ(error_of([&] { match(bad_truth, {}); }), "annotation 4 of image 2: its box is not finite");
}

TEST(Match, ground_truth_of_another_image_is_refused) {
  const std::vector<Annotation> truths{truth(4, 3, kBox)};
  EXPECT_EQ(error_of([&] { match(truths, {}); }),
            "annotation 4 belongs to image 3, which is not among the images to match");
}

TEST(Match, detections_of_other_categories_are_counted) {
  const std::vector<Detection> detections{detection(1, kBox, 0.9, 5), detection(1, kBox, 0.8)};
  const auto outcomes = match({}, detections);
  EXPECT_EQ(outcomes.unknown_category_count, 1U);
  EXPECT_EQ(outcomes.scores.size(), 1U);
}

TEST(GroundTruth, is_in_the_order_of_image_ids) {
  const std::vector<Annotation> annotations{truth(1, 2, kBox), truth(2, 1, kBox), truth(3, 2, kElsewhere)};
  const auto resolved = resolve_ground_truth(annotations);
  ASSERT_EQ(resolved.boxes.size(), 3U);
  EXPECT_EQ(resolved.boxes[0].id, 2);
  EXPECT_EQ(resolved.boxes[1].id, 1);
  EXPECT_EQ(resolved.boxes[2].id, 3);
  EXPECT_TRUE(resolved.warnings.empty());
}

TEST(GroundTruth, takes_the_last_annotation_of_an_id_for_all) {
  const std::vector<Annotation> annotations{truth(5, 1, kBox), truth(6, 1, kBox), truth(5, 2, kElsewhere)};
  const auto resolved = resolve_ground_truth(annotations);
  ASSERT_EQ(resolved.boxes.size(), 3U);
  EXPECT_EQ(resolved.boxes[0].id, 6);
  for (const auto i : {1U, 2U}) {
    EXPECT_EQ(resolved.boxes[i].image_id, ImageId(2));
    EXPECT_EQ(resolved.boxes[i].bbox_xywh, kElsewhere);
  }
  ASSERT_EQ(resolved.warnings.size(), 1U);
  EXPECT_THAT(resolved.warnings[0],
              testing::StartsWith("annotation ids used more than once: 5; as in pycocotools only the last"));
}

TEST(GroundTruth, warns_of_id_0) {
  const std::vector<Annotation> annotations{truth(0, 2, kBox)};
  const auto resolved = resolve_ground_truth(annotations);
  ASSERT_EQ(resolved.warnings.size(), 1U);
  EXPECT_THAT(resolved.warnings[0], HasSubstr("an annotation of image 2 has id 0"));
}

TEST(GroundTruth, warning_of_repeated_ids_names_the_first_few) {
  std::vector<Annotation> annotations;
  for (std::int64_t id = 1; id <= 8; ++id) annotations.push_back(truth(id, 1, kBox));
  for (std::int64_t id = 8; id >= 1; --id) annotations.push_back(truth(id, 1, kBox));
  EXPECT_THAT(
      resolve_ground_truth(annotations).warnings[0],
      testing::StartsWith("annotation ids used more than once: 8, 7, 6, 5, 4, ... (8 annotations); as in"));
}

TEST(MatchOutcomes, come_through_a_buffer_unchanged) {
  const std::vector<Annotation> truths{truth(1, 1, kBox), truth(2, 2, kElsewhere)};
  const std::vector<Detection> detections{detection(1, kElsewhere, 0.5), detection(2, kBox, 0.9),
                                          detection(2, kBox, 0.8, 5)};
  for (const auto& outcomes : {match(truths, detections), match({}, {}), MatchOutcomes{}}) {
    EXPECT_EQ(match_outcomes_from_bytes(to_bytes(outcomes)), outcomes);
  }
}

TEST(MatchOutcomes, a_buffer_cut_off_or_longer_or_of_something_else_is_refused) {
  const std::vector<Detection> detections{detection(1, kElsewhere, 0.5), detection(2, kBox, 0.9)};
  const auto bytes = to_bytes(match({}, detections));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(match_outcomes_from_bytes(std::span(bytes).first(size)), Error) << size;
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_THROW(match_outcomes_from_bytes(longer), Error);
  // Counts that would take all memory, in each field of the header.
  for (std::size_t field = 0; field < 9; ++field) {
    auto damaged = bytes;
    damaged[field * 8 + 7] = std::byte{0x7f};
    EXPECT_THROW(match_outcomes_from_bytes(damaged), Error) << field;
  }
}

TEST(Accumulate, an_image_in_two_parts_is_refused) {
  const std::vector<MatchOutcomes> parts{match({}, {}), match({}, {})};
  EXPECT_EQ(error_of([&] { accumulate({}, kCategories, parts); }),
            "evaluation: image 1 was matched by two ranks");
}

TEST(Accumulate, parts_made_with_other_parameters_are_refused) {
  const std::vector<MatchOutcomes> parts{match({}, {})};
  EvaluationParameters parameters;
  parameters.max_detections = {1, 10, 50};
  const auto expected = "evaluation: the parts were matched with other categories or parameters";
  EXPECT_EQ(error_of([&] { accumulate(parameters, kCategories, parts); }), expected);
  EXPECT_EQ(error_of([&] { accumulate({}, std::vector<CategoryId>{}, parts); }), expected);
}

TEST(Accumulate, no_parts_at_all_give_a_result_without_ground_truth) {
  const auto result = accumulate({}, kCategories, {});
  EXPECT_THAT(result.recall, testing::Each(-1.0));
  EXPECT_EQ(result.image_count, 0U);
}

TEST(Evaluate, says_what_makes_the_numbers_surprising) {
  AnnotationSet set;
  set.categories = {{CategoryId(1), "cat"}};
  set.images = {{ImageId(1), "a.jpg", 60, 40}};
  set.annotations = {truth(0, 1, kBox)};
  const std::vector<Detection> detections{detection(1, kBox, 0.9), detection(1, kBox, 0.8, 5)};
  const auto evaluation = evaluate({}, set, detections);
  EXPECT_THAT(evaluation.warnings,
              ElementsAre(HasSubstr("id 0"),
                          "1 of 2 detections are of categories that are not in the ground truth; they "
                          "do not count"));
}

}  // namespace
}  // namespace ssd
