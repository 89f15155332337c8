#include "report/draw.hpp"

#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "report/image_file.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

using Rgb = std::array<std::uint8_t, 3>;

RgbImage plain(int width, int height, Rgb color) {
  RgbImage image{width, height, {}};
  for (int i = 0; i < width * height; ++i)
    image.pixels.insert(image.pixels.end(), color.begin(), color.end());
  return image;
}

Rgb pixel(const RgbImage& image, int x, int y) {
  const auto* rgb =
      image.pixels.data() +
      (static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) + static_cast<std::size_t>(x)) * 3;
  return {rgb[0], rgb[1], rgb[2]};
}

int count_in(const RgbImage& image, Rgb color, int left, int top, int right, int bottom) {
  int count = 0;
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x) count += pixel(image, x, y) == color;
  }
  return count;
}

constexpr Rgb kGray{128, 128, 128};
const RgbImage kPhoto = plain(800, 600, kGray);

// Rows above the photo in a drawing without a legend.
int title_rows(const RgbImage& drawing) {
  return drawing.height - 600;
}

TEST(Draw, a_box_is_drawn_on_its_sides_and_nowhere_else) {
  const std::vector<Panel> panels{{"", {{{200, 100, 400, 300}, 2, ""}}}};
  const auto drawing = draw_panels(kPhoto, panels, {});
  EXPECT_EQ(drawing.width, 800);
  const int top = title_rows(drawing);
  const auto color = class_color(2);
  for (const auto& [x, y] :
       std::vector<std::pair<int, int>>{{200, 250}, {600, 250}, {400, 100}, {400, 400}, {200, 100}})
    EXPECT_EQ(pixel(drawing, x, top + y), color) << x << " " << y;
  EXPECT_EQ(count_in(drawing, kGray, 210, top + 110, 590, top + 390), 380 * 280);
  EXPECT_EQ(count_in(drawing, kGray, 0, top, 800, top + 90), 800 * 90);
  EXPECT_EQ(count_in(drawing, kGray, 0, top + 410, 800, top + 600), 800 * 190);
}

TEST(Draw, the_first_box_lies_on_top) {
  const std::vector<Panel> panels{{"", {{{100, 100, 200, 200}, 1, ""}, {{100, 200, 200, 200}, 2, ""}}}};
  const auto drawing = draw_panels(kPhoto, panels, {});
  EXPECT_EQ(pixel(drawing, 100, title_rows(drawing) + 250), class_color(1));
}

TEST(Draw, a_label_is_above_its_box_or_within_where_there_is_no_room) {
  const std::vector<Panel> panels{
      {"", {{{100, 300, 300, 200}, 1, "cell 0.9"}, {{500, 0, 200, 200}, 3, "cell 0.8"}}}};
  const auto drawing = draw_panels(kPhoto, panels, {});
  const int top = title_rows(drawing);
  const auto is_changed = [&](int left, int first, int right, int last) {
    return count_in(drawing, kGray, left, top + first, right, top + last) < (right - left) * (last - first);
  };
  EXPECT_TRUE(is_changed(105, 285, 130, 295));
  EXPECT_FALSE(is_changed(105, 310, 395, 495));
  EXPECT_TRUE(is_changed(510, 5, 530, 15));
}

TEST(Draw, boxes_outside_of_the_picture_leave_the_other_panel_alone) {
  const std::vector<Panel> panels{{"", {{{700, 500, 5000, 5000}, 1, "far"}, {{-50, -50, 20, 20}, 2, "gone"}}},
                                  {"", {}}};
  const auto drawing = draw_panels(kPhoto, panels, {});
  const int gap = drawing.width - 1600;
  EXPECT_GT(gap, 0);
  EXPECT_EQ(count_in(drawing, kGray, 800 + gap, title_rows(drawing), drawing.width, drawing.height),
            800 * 600);
  EXPECT_EQ(pixel(drawing, 700, title_rows(drawing) + 560), class_color(1));
}

TEST(Draw, a_legend_shows_the_color_of_each_entry_below_the_picture) {
  const std::vector<Panel> panels{{"t", {}}};
  std::vector<LegendEntry> legend;
  for (int label = 1; label <= 40; ++label) legend.push_back({label, "a class of a long name"});
  const auto without = draw_panels(kPhoto, panels, {});
  const auto drawing = draw_panels(kPhoto, panels, legend);
  for (int label = 1; label <= 40; ++label)
    EXPECT_GT(count_in(drawing, class_color(label), 0, without.height, 800, drawing.height), 50) << label;
}

TEST(Draw, small_pictures_grow_and_large_ones_shrink) {
  const std::vector<Panel> panels{{"", {{{0.25, 0.25, 0.5, 0.5}, 1, "x"}}}};
  EXPECT_EQ(draw_panels(plain(1, 1, kGray), panels, {}).width, kLeastSide);
  EXPECT_EQ(draw_panels(plain(4096, 1024, kGray), panels, {}).width, kMostSide);
  const auto grown =
      draw_panels(plain(320, 240, kGray), std::vector<Panel>{{"", {{{100, 100, 100, 100}, 1, ""}}}}, {});
  EXPECT_EQ(grown.width, 640);
  EXPECT_EQ(pixel(grown, 200, grown.height - 480 + 300), class_color(1));
}

TEST(Draw, text_that_is_not_utf8_is_an_error) {
  const std::vector<Panel> panels{{"", {{{10, 10, 50, 50}, 1, "\xff\xfe"}}}};
  EXPECT_THROW(draw_panels(kPhoto, panels, {}), Error);
}

TEST(Draw, classes_have_colors_of_their_own) {
  std::set<Rgb> colors;
  for (int label = 1; label <= 200; ++label) colors.insert(class_color(label));
  EXPECT_EQ(colors.size(), 200U);
}

RgbImage noise() {
  auto image = plain(37, 23, {0, 0, 0});
  std::uint32_t state = 1;
  for (auto& value : image.pixels)
    value = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return image;
}

TEST(ImageFile, png_keeps_every_pixel) {
  const auto image = noise();
  const auto bytes = encode_image(image, ImageFormat::png);
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  ASSERT_NE(png_image_begin_read_from_memory(&header, bytes.data(), bytes.size()), 0);
  header.format = PNG_FORMAT_RGB;
  std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(header));
  ASSERT_NE(png_image_finish_read(&header, nullptr, pixels.data(), 0, nullptr), 0);
  EXPECT_EQ(header.width, 37U);
  EXPECT_EQ(pixels, image.pixels);
}

TEST(ImageFile, jpeg_is_read_back_as_nearly_the_same_picture) {
  const auto image = plain(33, 17, {200, 30, 90});
  RgbImage back;
  EXPECT_EQ(JpegDecoder().decode(encode_image(image, ImageFormat::jpeg), back), 0);
  ASSERT_EQ(back.pixels.size(), image.pixels.size());
  for (std::size_t i = 0; i < image.pixels.size(); ++i) ASSERT_NEAR(back.pixels[i], image.pixels[i], 3);
}

TEST(ImageFile, a_side_that_jpeg_does_not_have_is_an_error) {
  EXPECT_THROW(encode_image(plain(65501, 1, kGray), ImageFormat::jpeg), Error);
}

TEST(ImageFile, is_written_whole_and_a_folder_that_is_missing_is_named) {
  const TemporaryFolder folder;
  write_image(folder.path() / "a.png", noise(), ImageFormat::png);
  EXPECT_EQ(bytes_of(folder.path() / "a.png"), encode_image(noise(), ImageFormat::png));
  EXPECT_NE(
      message_of<Error>([&] { write_image("/nowhere/a.png", noise(), ImageFormat::png); }).find("/nowhere"),
      std::string::npos);
}

}  // namespace
}  // namespace ssd
