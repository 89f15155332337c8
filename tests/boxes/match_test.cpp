#include "boxes/match.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "boxes/default_boxes.hpp"
#include "core/error.hpp"
#include "support/h5_golden.hpp"

namespace ssd {
namespace {

std::vector<std::int32_t> match(const std::vector<BoxLtrb>& boxes) {
  std::vector<std::int32_t> matched(kDefaultBoxCount);
  BoxMatcher().match(boxes, matched);
  return matched;
}

std::ptrdiff_t positives_of(const std::vector<std::int32_t>& matched) {
  return std::count_if(matched.begin(), matched.end(),
                       [](std::int32_t truth) { return truth != kBackground; });
}

class GoldenEncode : public testing::Test {
 protected:
  std::vector<BoxLtrb> boxes(const std::string& group) {
    const auto flat = golden.read<float>(group + "/boxes_ltrb");
    std::vector<BoxLtrb> result(flat.size() / 4);
    for (std::size_t i = 0; i < flat.size(); ++i) result[i / 4][i % 4] = flat[i];
    return result;
  }
  test::GoldenFile golden{std::string(SSD_TEST_DATA) + "/golden/encode.h5"};
};

constexpr int kCases = 51;

TEST_F(GoldenEncode, matches_every_case_exactly) {
  BoxMatcher matcher;  // one for all cases: nothing may stay behind from one to the next
  for (int number = 0; number < kCases; ++number) {
    const std::string group = fmt::format("case_{:02}", number);
    SCOPED_TRACE(group);
    const std::vector<BoxLtrb> truth = boxes(group);
    const auto labels = golden.read<std::int64_t>(group + "/labels");
    const auto index = golden.read<std::int64_t>(group + "/index");
    const auto target_label = golden.read<std::int64_t>(group + "/target_label");
    const auto target_xywh = golden.read<float>(group + "/target_xywh");
    std::vector<std::int32_t> matched(kDefaultBoxCount);
    matcher.match(truth, matched);

    ASSERT_EQ(positives_of(matched), static_cast<std::ptrdiff_t>(index.size()));
    for (std::size_t row = 0; row < index.size(); ++row) {
      const std::int32_t own = matched[static_cast<std::size_t>(index[row])];
      ASSERT_NE(own, kBackground) << "default box " << index[row];
      const auto place = static_cast<std::size_t>(own);
      EXPECT_EQ(labels[place], target_label[row]);
      const BoxCxcywh box = cxcywh_of(truth[place]);
      for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(box[k], target_xywh[row * 4 + k]);
    }
  }
  EXPECT_FALSE(golden.has(fmt::format("case_{:02}", kCases)));
}

TEST_F(GoldenEncode, gives_the_reference_s_location_targets) {
  for (int number = 0; number < kCases; ++number) {
    const std::string group = fmt::format("case_{:02}", number);
    SCOPED_TRACE(group);
    const std::vector<BoxLtrb> truth = boxes(group);
    const auto index = golden.read<std::int64_t>(group + "/index");
    const auto vec = golden.read<float>(group + "/vec");
    const std::vector<std::int32_t> matched = match(truth);
    for (std::size_t row = 0; row < index.size(); ++row) {
      const auto place = static_cast<std::size_t>(index[row]);
      const auto target =
          location_target(truth[static_cast<std::size_t>(matched[place])], default_boxes().cxcywh[place]);
      for (std::size_t k = 0; k < 4; ++k) {
        const float expected = vec[row * 4 + k];
        if (std::isinf(expected)) {
          EXPECT_EQ(target[k], expected);
        } else {
          EXPECT_NEAR(target[k], expected,
                      1e-5);  // float32 against float64 differs by 3.8e-6 (golden README, 3)
        }
      }
    }
  }
}

TEST(BoxMatcher, T1_19_keeps_the_published_check_values) {
  const BoxLtrb small = {100.0F / 300, 100.0F / 300, 104.0F / 300, 104.0F / 300};
  EXPECT_EQ(positives_of(match({small})), 1);
  EXPECT_EQ(match({small})[468], 0);
  EXPECT_NEAR(iou(small, default_boxes().ltrb[468]), 0.0363, 5e-5);  // four digits are published
  EXPECT_EQ(positives_of(match({{0, 0, 1, 1}})), 5);
  EXPECT_EQ(positives_of(match({{0.25F, 0.25F, 0.75F, 0.75F}})), 10);
}

TEST(BoxMatcher, leaves_all_background_without_boxes) {
  EXPECT_EQ(positives_of(match({})), 0);
}

TEST(BoxMatcher, gives_the_best_default_box_of_equal_boxes_to_the_last_and_the_rest_to_the_first) {
  const BoxLtrb box = {0.25F, 0.25F, 0.75F, 0.75F};
  const std::vector<std::int32_t> matched = match({box, box, box});
  EXPECT_EQ(std::count(matched.begin(), matched.end(), 2), 1);
  EXPECT_EQ(matched[8554], 2);
  EXPECT_EQ(std::count(matched.begin(), matched.end(), 1), 0);
  EXPECT_EQ(std::count(matched.begin(), matched.end(), 0), 9);
}

TEST(BoxMatcher, forces_a_box_of_no_size_onto_the_first_default_box) {
  const std::vector<std::int32_t> matched = match({{0.5F, 0.5F, 0.5F, 0.5F}});
  EXPECT_EQ(matched[0], 0);
  EXPECT_EQ(positives_of(matched), 1);
}

TEST(BoxMatcher, refuses_boxes_that_are_inverted_or_not_finite) {
  EXPECT_THROW(match({{0.5F, 0.1F, 0.4F, 0.2F}}), ContractError);
  EXPECT_THROW(match({{0.1F, 0.1F, std::numeric_limits<float>::quiet_NaN(), 0.2F}}), ContractError);
}

}  // namespace
}  // namespace ssd
