#include "infer/drawn_detections.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "report/draw.hpp"

namespace ssd {
namespace {

using Rgb = std::array<std::uint8_t, 3>;

const RgbImage kPhoto{640, 480, std::vector<std::uint8_t>(640 * 480 * 3, 200)};
constexpr int kFirstRow = 28;  // of the photo, below the titles: 2 fonts of 640 / 46

int count_of(const RgbImage& image, Rgb color, int left, int right) {
  int count = 0;
  for (int y = kFirstRow; y < kFirstRow + kPhoto.height; ++y) {
    for (int x = left; x < right; ++x)
      count += std::equal(color.begin(), color.end(), image.pixels.data() + (y * image.width + x) * 3);
  }
  return count;
}

TEST(DetectionDrawer,
     truth_and_detections_of_the_image_are_in_panels_of_their_own_in_the_colors_of_their_classes) {
  AnnotationSet truth;
  truth.categories = {{CategoryId(8), "only in the truth"}, {CategoryId(5), "cat"}, {CategoryId(9), "dog"}};
  truth.annotations = {{1, ImageId(1), CategoryId(8), {100, 100, 200, 200}, 1, false},
                       {2, ImageId(2), CategoryId(5), {100, 100, 200, 200}, 1, false}};  // of another image
  const DetectionDrawer drawer({{CategoryId(9), "dog"}, {CategoryId(5), "cat"}}, 0.3F, &truth);
  const std::vector<Detection> detections{{ImageId(1), CategoryId(9), {50, 50, 300, 300}, 0.9}};
  const auto drawing = drawer.draw(kPhoto, ImageId(1), detections);
  const int right = drawing.width - 640;  // where the second panel begins
  ASSERT_GE(right, 640);
  // Labels: dog 1, cat 2 as in the checkpoint, then what only the truth has.
  EXPECT_GT(count_of(drawing, class_color(3), 0, 640), 700);
  EXPECT_EQ(count_of(drawing, class_color(3), right, drawing.width), 0);
  EXPECT_GT(count_of(drawing, class_color(1), right, drawing.width), 1100);
  EXPECT_EQ(count_of(drawing, class_color(1), 0, 640), 0);
  EXPECT_EQ(count_of(drawing, class_color(2), 0, drawing.width), 0);
}

TEST(DetectionDrawer, without_a_truth_there_is_one_panel) {
  const DetectionDrawer drawer({{CategoryId(1), "dog"}}, 0.3F, nullptr);
  EXPECT_EQ(drawer.draw(kPhoto, ImageId(1), {}).width, 640);
}

}  // namespace
}  // namespace ssd
