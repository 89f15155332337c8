#include "data/augmentation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

using Counts = std::vector<double>;

double total(const Counts& counts) {
  double sum = 0;
  for (const double count : counts) sum += count;
  return sum;
}

// Standard deviations that a two-sample chi-square lies above its mean (Wilson and Hilferty, "The
// Distribution of Chi-square", 1931). Neighbouring bins are merged until each has 20 of the golden counts.
double chi_square_deviations(const Counts& ours, const Counts& golden) {
  Counts a, b;
  double pending_a = 0, pending_b = 0;
  for (std::size_t i = 0; i < golden.size(); ++i) {
    pending_a += ours[i];
    pending_b += golden[i];
    if (pending_b < 20) continue;
    a.push_back(std::exchange(pending_a, 0));
    b.push_back(std::exchange(pending_b, 0));
  }
  if (a.empty()) return pending_a + pending_b < 40 ? 0 : 1e9;
  a.back() += pending_a;
  b.back() += pending_b;
  if (a.size() < 2) return 0;
  const double ratio = std::sqrt(total(b) / total(a));
  double chi_square = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = ratio * a[i] - b[i] / ratio;
    chi_square += difference * difference / (a[i] + b[i]);
  }
  const double freedom = static_cast<double>(a.size()) - 1;
  const double spread = 2 / (9 * freedom);
  return (std::cbrt(chi_square / freedom) - (1 - spread)) / std::sqrt(spread);
}

constexpr double kMostDeviations = 4.27;  // p = 1e-5 of a normal distribution, one-sided

std::size_t bin_of(double value, const std::vector<double>& edges) {
  std::size_t bin = 0;
  while (bin + 2 < edges.size() && value >= edges[bin + 1]) ++bin;
  return bin;
}

struct CropStatistics {
  std::map<std::string, Counts> counts;
  Counts each_kept;
  double crops = 0;
  double kept = 0;
  std::array<double, 4> sum_ltrb{};
};

CropStatistics draw_many(const std::vector<BoxLtrb>& boxes, const nlohmann::json& edges, int calls,
                         std::uint64_t id) {
  CropStatistics result;
  for (const auto& [name, values] : edges.items()) result.counts[name].resize(values.size() - 1);
  result.counts["final_option"].resize(7);
  result.counts["option_draws_per_call"].resize(20);
  result.counts["boxes_kept"].resize(boxes.size() + 1);
  result.each_kept.resize(boxes.size());
  for (int call = 0; call < calls; ++call) {
    RandomStream random(11, RandomPurpose::test, static_cast<std::uint32_t>(call), id);
    const CropDraw crop = draw_crop(boxes, {}, random);
    ++result.counts["final_option"][static_cast<std::size_t>(crop.option)];
    ++result.counts["option_draws_per_call"][static_cast<std::size_t>(std::min(crop.draws, 20) - 1)];
    if (crop.option == CropOption::whole) continue;
    const std::map<std::string, double> values = {{"area_fraction", crop.width * crop.height},
                                                  {"aspect_ratio", crop.width / crop.height},
                                                  {"width", crop.width},
                                                  {"height", crop.height},
                                                  {"centre_x", crop.left + crop.width / 2},
                                                  {"centre_y", crop.top + crop.height / 2}};
    for (const auto& [name, value] : values) ++result.counts[name][bin_of(value, edges.at(name))];
    SampleBoxes sample{boxes, {}};
    for (std::size_t i = 0; i < boxes.size(); ++i) sample.labels.push_back(static_cast<std::int32_t>(i));
    crop_boxes(crop, sample);
    ++result.crops;
    ++result.counts["boxes_kept"][sample.ltrb.size()];
    for (std::size_t i = 0; i < sample.ltrb.size(); ++i) {
      ++result.each_kept[static_cast<std::size_t>(sample.labels[i])];
      ++result.kept;
      for (std::size_t k = 0; k < 4; ++k) result.sum_ltrb[k] += sample.ltrb[i][k];
    }
  }
  return result;
}

Counts counts_in_order(const nlohmann::json& object, const std::vector<std::string>& keys) {
  Counts counts;
  for (const std::string& key : keys) counts.push_back(object.at(key).get<double>());
  return counts;
}

TEST(Crop, is_distributed_as_the_reference_s) {
  constexpr int kCalls = 50000;
  std::ifstream stream(std::string(SSD_TEST_DATA) + "/golden/augmentation_stats.json");
  const auto golden = nlohmann::json::parse(stream);
  ASSERT_EQ(golden.at("sets").size(), 6U);
  std::vector<std::string> draws;
  for (int i = 1; i <= 20; ++i) draws.push_back(std::to_string(i));
  std::uint64_t id = 0;
  for (const auto& set : golden.at("sets")) {
    SCOPED_TRACE(set.at("name").get<std::string>());
    const auto boxes = set.at("boxes_ltrb").get<std::vector<BoxLtrb>>();
    const CropStatistics ours = draw_many(boxes, golden.at("edges"), kCalls, id++);
    for (const auto& [name, counts] : ours.counts) {
      const Counts expected =
          name == "final_option"
              ? counts_in_order(set.at(name), {"none", "0.1", "0.3", "0.5", "0.7", "0.9", "any"})
          : name == "option_draws_per_call" ? counts_in_order(set.at(name), draws)
                                            : set.at(name).get<Counts>();
      EXPECT_LT(chi_square_deviations(counts, expected), kMostDeviations) << name;
    }
    const double crops = set.at("crops");
    double golden_kept = 0;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      const double kept = set.at("box_kept_each").at(i);
      golden_kept += kept;
      EXPECT_LT(
          chi_square_deviations({ours.each_kept[i], ours.crops - ours.each_kept[i]}, {kept, crops - kept}),
          kMostDeviations)
          << "box " << i;
    }
    // Numbers in [0,1] have a standard deviation of at most 1/2; five of the difference of the two means,
    // times the square root of the boxes of one crop, which go together.
    const double together = std::sqrt(static_cast<double>(boxes.size()));
    const double tolerance = 5 * 0.5 * together * std::sqrt(1 / ours.kept + 1 / golden_kept);
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_NEAR(ours.sum_ltrb[k] / ours.kept, set.at("mean_new_box_ltrb").at(k).get<double>(), tolerance);
    }
  }
}

TEST(Crop, fulfils_what_its_option_asks_for) {
  const std::vector<BoxLtrb> boxes = {{0.1F, 0.2F, 0.6F, 0.7F}, {0.3F, 0.3F, 0.9F, 0.9F}};
  const std::map<CropOption, float> minimum = {{CropOption::iou_above_10, 0.1F},
                                               {CropOption::iou_above_30, 0.3F},
                                               {CropOption::iou_above_50, 0.5F},
                                               {CropOption::iou_above_70, 0.7F},
                                               {CropOption::iou_above_90, 0.9F}};
  std::map<CropOption, int> seen;
  for (std::uint32_t call = 0; call < 20000; ++call) {
    RandomStream random(1, RandomPurpose::test, call, 0);
    const CropDraw crop = draw_crop(boxes, {}, random);
    ++seen[crop.option];
    EXPECT_LE(0, crop.left);
    EXPECT_LE(crop.left + crop.width, 1 + 1e-15);  // the sum of two rounded numbers
    EXPECT_LE(0, crop.top);
    EXPECT_LE(crop.top + crop.height, 1 + 1e-15);
    if (!minimum.contains(crop.option)) continue;
    const BoxLtrb rectangle = {static_cast<float>(crop.left), static_cast<float>(crop.top),
                               static_cast<float>(crop.left + crop.width),
                               static_cast<float>(crop.top + crop.height)};
    for (const BoxLtrb& box : boxes)
      EXPECT_GT(iou(box, rectangle), minimum.at(crop.option) - 1e-6F);  // float32
  }
  EXPECT_GE(seen.size(), 5U);
  EXPECT_GT(seen[CropOption::iou_above_30], 0);
}

TEST(Crop, T1_12_ends_with_a_box_in_the_unit_square_even_for_a_tiny_corner_box) {
  for (std::uint32_t call = 0; call < 1000; ++call) {
    SampleBoxes boxes{{{0, 0, 0.1F, 0.1F}}, {3}};
    RandomStream random(1, RandomPurpose::test, call, 0);
    crop_boxes(draw_crop(boxes.ltrb, {}, random), boxes);
    ASSERT_EQ(boxes.ltrb.size(), 1U);
    const BoxLtrb& box = boxes.ltrb[0];
    EXPECT_TRUE(0 <= box[0] && box[0] < box[2] && box[2] <= 1 && 0 <= box[1] && box[1] < box[3] &&
                box[3] <= 1);
  }
}

// Crops of the whole picture's size: a box's area is its IoU with them, exactly.
TEST(Crop, needs_an_iou_above_the_minimum_and_not_equal_to_it) {
  const AugmentationOptions options{.crop_side = {1, 1}, .crop_aspect = {1, 1}};
  const auto options_seen = [&](const std::vector<BoxLtrb>& boxes) {
    std::set<CropOption> seen;
    for (std::uint32_t call = 0; call < 500; ++call) {
      RandomStream random(1, RandomPurpose::test, call, 0);
      const auto crop = draw_crop(boxes, options, random);
      EXPECT_EQ(crop.left, 0);
      EXPECT_EQ(crop.top, 0);
      EXPECT_EQ(crop.width, 1);
      EXPECT_EQ(crop.height, 1);
      seen.insert(crop.option);
    }
    return seen;
  };
  using enum CropOption;
  const std::set<CropOption> up_to_30{whole, iou_above_10, iou_above_30, any};
  EXPECT_EQ(options_seen({{0, 0, 1, 0.5F}}), up_to_30);
  const std::set<CropOption> up_to_50{whole, iou_above_10, iou_above_30, iou_above_50, any};
  EXPECT_EQ(options_seen({{0, 0, 1, std::nextafter(0.5F, 1.0F)}}), up_to_50);
  // Every box has to have it, and one of them its centre inside.
  EXPECT_EQ(options_seen({{0, 0, 1, 1}, {0, 0, 1, 0.5F}}), up_to_30);
  // An IoU of 0 is enough for "any" alone.
  EXPECT_EQ(options_seen({{0, 0, 1, 1}, {0.5F, 0.5F, 0.5F, 0.5F}}), (std::set<CropOption>{whole, any}));
}

TEST(Crop, of_the_whole_picture_keeps_every_box_as_it_is) {
  const std::vector<BoxLtrb> boxes{{0, 0, 1, 1}, {0.25F, 0.5F, 0.5F, 0.75F}, {0.9F, 0.9F, 1, 1}};
  int seen = 0;
  for (std::uint32_t call = 0; call < 500; ++call) {
    RandomStream random(1, RandomPurpose::test, call, 0);
    const auto crop = draw_crop(boxes, {}, random);
    if (crop.option != CropOption::whole) continue;
    ++seen;
    EXPECT_TRUE(crop.left == 0 && crop.top == 0 && crop.width == 1 && crop.height == 1);
    SampleBoxes sample{boxes, {1, 2, 3}};
    crop_boxes(crop, sample);
    EXPECT_EQ(sample.ltrb, boxes);
    EXPECT_EQ(sample.labels, (std::vector<std::int32_t>{1, 2, 3}));
    EXPECT_EQ(pixel_rect(crop, 500, 375), (PixelRect{0, 0, 500, 375}));
  }
  EXPECT_GT(seen, 50);
}

// Only "any" may leave a box outside; the others keep a part of each.
TEST(Crop, any_alone_may_leave_a_box_wholly_outside) {
  const std::vector<BoxLtrb> boxes{{0, 0, 0.3F, 0.3F}, {0.7F, 0.7F, 1, 1}};
  std::map<CropOption, int> outside;
  for (std::uint32_t call = 0; call < 5000; ++call) {
    RandomStream random(1, RandomPurpose::test, call, 0);
    const auto crop = draw_crop(boxes, {}, random);
    for (const auto& box : boxes) {
      if (box[2] <= crop.left || crop.left + crop.width <= box[0] || box[3] <= crop.top ||
          crop.top + crop.height <= box[1])
        ++outside[crop.option];
    }
  }
  EXPECT_EQ(outside.size(), 1U);
  EXPECT_GT(outside[CropOption::any], 100);
}

TEST(Crop, ends_without_any_box) {
  RandomStream random(1, RandomPurpose::test, 0, 0);
  const CropDraw crop = draw_crop({}, {}, random);
  EXPECT_EQ(crop.option, CropOption::whole);
  EXPECT_LE(crop.draws, kMostCropDraws);
}

TEST(CropBoxes, drops_a_box_whose_centre_lies_on_the_edge) {
  const CropDraw crop{CropOption::any, 0.5, 0, 0.5, 1, 1};
  SampleBoxes boxes{{{0.25F, 0.25F, 0.75F, 0.75F}, {0.5F, 0.25F, 0.75F, 0.75F}}, {1, 2}};
  crop_boxes(crop, boxes);
  EXPECT_EQ(boxes.labels, (std::vector<std::int32_t>{2}));
  EXPECT_EQ(boxes.ltrb, (std::vector<BoxLtrb>{{0, 0.25F, 0.5F, 0.75F}}));
}

TEST(CropBoxes, clips_what_reaches_out) {
  const CropDraw crop{CropOption::any, 0.25, 0.25, 0.5, 0.5, 1};
  SampleBoxes boxes{{{0, 0, 1, 0.875F}}, {1}};
  crop_boxes(crop, boxes);
  EXPECT_EQ(boxes.ltrb, (std::vector<BoxLtrb>{{0, 0, 1, 1}}));
}

TEST(PixelRect, truncates_and_is_never_empty) {
  EXPECT_EQ(pixel_rect({CropOption::any, 0.119, 0.251, 0.5, 0.5, 1}, 100, 10), (PixelRect{11, 2, 61, 7}));
  EXPECT_EQ(pixel_rect({}, 100, 10), (PixelRect{0, 0, 100, 10}));
  EXPECT_EQ(pixel_rect({CropOption::any, 0.6, 0.6, 0.35, 0.35, 1}, 1, 1), (PixelRect{0, 0, 1, 1}));
  EXPECT_EQ(pixel_rect({CropOption::any, 0.6, 0.6, 0.35, 0.35, 1}, 20000, 2),
            (PixelRect{12000, 1, 19000, 2}));
}

TEST(FlipBoxes, mirrors_left_and_right) {
  SampleBoxes boxes{{{0.125F, 0.25F, 0.5F, 0.75F}}, {1}};
  flip_boxes(boxes);
  EXPECT_EQ(boxes.ltrb, (std::vector<BoxLtrb>{{0.5F, 0.25F, 0.875F, 0.75F}}));
}

TEST(Augmentation, T1_11_draws_colours_in_their_ranges_and_flips_half_the_time) {
  const AugmentationOptions options;
  const std::vector<BoxLtrb> boxes = {{0.2F, 0.2F, 0.8F, 0.8F}};
  constexpr int kCalls = 20000;
  int flips = 0;
  std::array<double, 4> sums{}, sums_of_squares{};
  for (std::uint32_t call = 0; call < kCalls; ++call) {
    RandomStream random(5, RandomPurpose::test, call, 0);
    const Augmentation drawn = draw_augmentation(boxes, options, random);
    flips += drawn.is_flipped;
    const ColorChange& color = drawn.color;
    // Brought to -1/2 to 1/2.
    const std::array<double, 4> centred = {color.hue_degrees, color.saturation - 1, color.contrast - 1,
                                           (color.brightness - 1) * 4};
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_LE(std::abs(centred[i]), 0.5);
      sums[i] += centred[i];
      sums_of_squares[i] += centred[i] * centred[i];
    }
  }
  // Five standard deviations: 1/2 for a flip, 1/sqrt(12) for a uniform number x of width 1, 1/sqrt(180) for
  // x^2.
  EXPECT_NEAR(flips, kCalls / 2, 5 * std::sqrt(kCalls) / 2);
  for (const double sum : sums) EXPECT_NEAR(sum, 0, 5 * std::sqrt(kCalls / 12.0));
  for (const double sum : sums_of_squares) EXPECT_NEAR(sum, kCalls / 12.0, 5 * std::sqrt(kCalls / 180.0));
}

TEST(Augmentation, T5_15_differs_between_epochs_and_images_and_repeats_for_one) {
  const std::vector<BoxLtrb> boxes = {{0.2F, 0.2F, 0.8F, 0.8F}};
  const auto hue = [&](std::uint32_t epoch, std::uint64_t image) {
    RandomStream random(5, RandomPurpose::augmentation, epoch, image);
    return draw_augmentation(boxes, {}, random).color.hue_degrees;
  };
  EXPECT_EQ(hue(0, 1), hue(0, 1));
  EXPECT_NE(hue(0, 1), hue(1, 1));
  EXPECT_NE(hue(0, 1), hue(0, 2));
}

TEST(Augmentation, crops_keep_to_the_ranges_of_the_options) {
  const std::vector<BoxLtrb> boxes{{0.4F, 0.4F, 0.6F, 0.6F}};
  const AugmentationOptions options{.crop_side = {0.6, 0.8}, .crop_aspect = {1, 1.25}};
  int crops = 0;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    RandomStream random(1, RandomPurpose::test, 0, i);
    const CropDraw crop = draw_crop(boxes, options, random);
    if (crop.option == CropOption::whole) continue;
    ++crops;
    for (const double side : {crop.width, crop.height}) ASSERT_TRUE(0.6 <= side && side <= 0.8) << side;
    ASSERT_TRUE(crop.height <= crop.width && crop.width <= 1.25 * crop.height) << crop.width / crop.height;
  }
  EXPECT_GT(crops, 500);
}

TEST(AugmentationOptions, name_the_range_that_is_wrong) {
  EXPECT_NO_THROW(AugmentationOptions().validate());
  const auto message = [](const AugmentationOptions& options) {
    return message_of<UsageError>([&] { options.validate(); });
  };
  EXPECT_THAT(message({.crop_side = {0, 1}}), testing::HasSubstr("crop side from 0 to 1"));
  EXPECT_THAT(message({.crop_aspect = {0, 2}}), testing::HasSubstr("crop aspect from 0 to 2"));
  EXPECT_NO_THROW((AugmentationOptions{.crop_side = {0.5, 1}, .crop_aspect = {1.9, 3}}.validate()));
  EXPECT_NO_THROW((AugmentationOptions{.crop_side = {0.5, 0.5}, .crop_aspect = {1, 1}}.validate()));
  for (const Range aspect : {Range{2, 3}, Range{0.2, 0.5}, Range{1, 1}})
    EXPECT_THROW((AugmentationOptions{.crop_side = {0.5, 1}, .crop_aspect = aspect}.validate()), UsageError);
  EXPECT_THAT(message({.crop_side = {0.5, 1}, .crop_aspect = {2.5, 3}}),
              testing::HasSubstr("crop aspect from 2.5 to 3: no crop with sides from 0.5 to 1 has it"));
  EXPECT_THAT(message({.saturation = {1.5, 0.5}}), testing::HasSubstr("saturation from 1.5 to 0.5"));
  EXPECT_THAT(message({.contrast = {-1, 1}}), testing::HasSubstr("contrast from -1"));
  EXPECT_THAT(message({.brightness = {1, 5}}), testing::HasSubstr("brightness"));
  EXPECT_THAT(message({.hue_degrees = {std::nan(""), 1}}), testing::HasSubstr("hue"));
  EXPECT_THAT(message({.flip_probability = 1.5}), testing::HasSubstr("flip probability 1.5"));
}

}  // namespace
}  // namespace ssd
