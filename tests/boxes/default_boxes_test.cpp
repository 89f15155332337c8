#include "boxes/default_boxes.hpp"

#include <gtest/gtest.h>

#include "support/h5_golden.hpp"

namespace ssd {
namespace {

const std::string kGolden = std::string(SSD_TEST_DATA) + "/golden/default_boxes.h5";

void expect_equal(const std::vector<std::array<float, 4>>& boxes, const std::vector<float>& golden) {
  ASSERT_EQ(golden.size(), boxes.size() * 4);
  int wrong = 0;
  for (std::size_t i = 0; i < golden.size(); ++i) wrong += boxes[i / 4][i % 4] != golden[i];
  EXPECT_EQ(wrong, 0);
}

TEST(DefaultBoxes, are_the_reference_s_to_the_last_bit) {
  const test::GoldenFile golden(kGolden);
  expect_equal(default_boxes().cxcywh, golden.read<float>("xywh"));
  expect_equal(default_boxes().ltrb, golden.read<float>("ltrb"));
}

TEST(DefaultBoxes, begin_on_each_map_where_the_reference_s_do) {
  const test::GoldenFile golden(kGolden);
  const auto firsts = golden.read<std::int32_t>("map_first_index");
  const auto counts = golden.read<std::int32_t>("map_count");
  ASSERT_EQ(firsts.size(), kMapCount);
  for (int map = 0; map < kMapCount; ++map) {
    EXPECT_EQ(first_default_box(map), firsts[static_cast<std::size_t>(map)]);
    EXPECT_EQ(first_default_box(map + 1) - first_default_box(map), counts[static_cast<std::size_t>(map)]);
  }
  EXPECT_EQ(first_default_box(kMapCount), kDefaultBoxCount);
}

TEST(DefaultBoxes, have_as_many_shapes_in_a_cell_as_the_ratios_make) {
  for (std::size_t map = 0; map < kMapCount; ++map) {
    int shapes = 2;
    for (const int ratio : kAspectRatios[map]) shapes += ratio != 0 ? 2 : 0;
    EXPECT_EQ(kBoxesPerCell[map], shapes);
  }
}

}  // namespace
}  // namespace ssd
