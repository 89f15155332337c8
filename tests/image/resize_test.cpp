#include "image/resize.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/random.hpp"
#include "support/simd_targets.hpp"

namespace ssd {
namespace {

const std::string kFolder = std::string(SSD_TEST_DATA) + "/resize/";

std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352d;
  x ^= x >> 15;
  x *= 0x846ca68b;
  return x ^ (x >> 16);
}

// The rule of make_resize.py.
RgbImage picture(const std::string& kind, int width, int height) {
  RgbImage image{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        const auto index = static_cast<std::uint32_t>((y * width + x) * 3 + channel);
        const std::uint32_t value =
            kind == "noise"    ? mix(index) >> 24
            : kind == "checks" ? static_cast<std::uint32_t>((x / (3 + channel) + y / (2 + channel)) % 2 * 255)
                               : static_cast<std::uint32_t>((x * (2 + channel) + y * (3 - channel)) % 256);
        image.pixels.push_back(static_cast<std::uint8_t>(value));
      }
    }
  }
  return image;
}

std::vector<std::uint8_t> resized(const RgbView& view, int width, int height) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(width * height * 3));
  Resizer().resize(view, width, height, out.data());
  return out;
}

TEST(Resizer, stays_within_one_level_of_pillow) {
  std::ifstream stream(kFolder + "resize.json");
  const auto golden = nlohmann::json::parse(stream);
  ASSERT_GE(golden.at("cases").size(), 12U);
  Resizer resizer;  // one for all cases: nothing may stay behind from one to the next
  for (const auto& entry : golden.at("cases")) {
    SCOPED_TRACE(entry.dump());
    const RgbImage source =
        picture(entry.at("kind"), entry.at("source").at(0).get<int>(), entry.at("source").at(1).get<int>());
    const auto rect = entry.at("rectangle").get<std::array<int, 4>>();
    const auto size = entry.at("output").get<std::array<int, 2>>();
    std::ifstream file(kFolder + entry.at("file").get<std::string>(), std::ios::binary);
    const std::vector<char> expected{std::istreambuf_iterator<char>(file), {}};
    std::vector<std::uint8_t> out(static_cast<std::size_t>(size[0] * size[1] * 3));
    ASSERT_EQ(expected.size(), out.size());

    resizer.resize(crop_of(view_of(source), {rect[0], rect[1], rect[2], rect[3]}), size[0], size[1],
                   out.data());
    int worst = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      worst = std::max(worst, std::abs(int{out[i]} - int{static_cast<std::uint8_t>(expected[i])}));
    }
    EXPECT_LE(worst, 1);  // Pillow rounds between its passes, this one does not
  }
}

TEST(Resizer, leaves_a_picture_of_the_right_size_as_it_is) {
  const RgbImage source = picture("noise", 300, 300);
  EXPECT_EQ(resized(view_of(source), 300, 300), source.pixels);
}

TEST(Resizer, keeps_flat_colour_flat) {
  for (const int side : {1, 2, 299, 301, 1000}) {
    RgbImage source{side, side, std::vector<std::uint8_t>(static_cast<std::size_t>(side * side * 3), 255)};
    const auto out = resized(view_of(source), 300, 300);
    EXPECT_EQ(std::count(out.begin(), out.end(), 255), 300 * 300 * 3) << side;
  }
}

TEST(Resizer, scales_every_length_to_every_length) {
  for (int from = 1; from <= 60; ++from) {
    const RgbImage source{from, 1, std::vector<std::uint8_t>(static_cast<std::size_t>(from) * 3, 200)};
    for (int to = 1; to <= 60; ++to) {  // 9 to 33: a filter that begins and ends on the centres of pixels
      const auto out = resized(view_of(source), to, 1);
      EXPECT_EQ(std::count(out.begin(), out.end(), 200), to * 3) << from << " to " << to;
    }
  }
}

std::vector<std::uint8_t> flipped(const std::vector<std::uint8_t>& pixels, int width, int height) {
  std::vector<std::uint8_t> result;
  for (int y = 0; y < height; ++y) {
    for (int x = width - 1; x >= 0; --x) {
      const auto* pixel = &pixels[static_cast<std::size_t>((y * width + x) * 3)];
      result.insert(result.end(), pixel, pixel + 3);
    }
  }
  return result;
}

TEST(Resizer, flips_and_colours_what_it_has_scaled) {
  const ColorTransform color = color_transform({0.4, 1.3, 0.7, 1.1});
  // Of few and of many taps in each direction, and enlarging.
  for (const auto& [width, height] : {std::pair{640, 427}, {50, 1000}, {2000, 60}, {3, 2}, {1, 1}}) {
    SCOPED_TRACE(width);
    const RgbImage source = picture("noise", width, height);
    const auto plain = resized(view_of(source), 37, 41);
    std::vector<std::uint8_t> out(plain.size()), colored(plain.size());
    Resizer().resize(view_of(source), 37, 41, out.data(), {.is_flipped = true});
    EXPECT_EQ(out, flipped(plain, 37, 41));
    Resizer().resize(view_of(source), 37, 41, out.data(), {.is_flipped = true, .color = &color});
    const auto turned = flipped(plain, 37, 41);
    apply_color(color, turned.data(), turned.size() / 3, colored.data());
    EXPECT_EQ(out, colored);
  }
}

// The same filter with real numbers, and one rounding.
TEST(Resizer, is_the_triangle_filter_rounded_once) {
  RandomStream random(2, RandomPurpose::test, 0, 0);
  const auto triangle = [](int source, int output, int at, int pixel) {
    const double scale = static_cast<double>(source) / output, support = std::max(scale, 1.0);
    return std::max(1 - std::abs(pixel + 0.5 - (at + 0.5) * scale) / support, 0.0);
  };
  for (int round = 0; round < 40; ++round) {
    const auto side = [&](std::uint32_t most) { return 1 + static_cast<int>(random.below(most)); };
    const int width = side(90), height = side(90), out_width = side(25), out_height = side(25);
    const RgbImage source = picture("noise", width, height);
    const auto out = resized(view_of(source), out_width, out_height);
    for (int check = 0; check < 20; ++check) {
      const int x = static_cast<int>(random.below(static_cast<std::uint32_t>(out_width)));
      const int y = static_cast<int>(random.below(static_cast<std::uint32_t>(out_height)));
      double sum = 0, total = 0;
      for (int sy = 0; sy < height; ++sy) {
        for (int sx = 0; sx < width; ++sx) {
          const double weight = triangle(width, out_width, x, sx) * triangle(height, out_height, y, sy);
          sum += weight * source.pixels[static_cast<std::size_t>((sy * width + sx) * 3 + 1)];
          total += weight;
        }
      }
      // Each of at most six taps in each direction loses up to 1/256 of a level, and the weights are in
      // 1/65536.
      EXPECT_NEAR(out[static_cast<std::size_t>((y * out_width + x) * 3 + 1)], sum / total, 0.5 + 13.0 / 256);
    }
  }
}

TEST(Resizer, does_not_look_outside_the_crop) {
  RgbImage source = picture("noise", 40, 40);
  const PixelRect rect{10, 10, 20, 25};
  const auto before = resized(crop_of(view_of(source), rect), 30, 8);
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 40; ++x) {
      if (rect.left <= x && x < rect.right && rect.top <= y && y < rect.bottom) continue;
      for (int channel = 0; channel < 3; ++channel)
        source.pixels[static_cast<std::size_t>((y * 40 + x) * 3 + channel)] ^= 0xff;
    }
  }
  EXPECT_EQ(resized(crop_of(view_of(source), rect), 30, 8), before);
}

// The definition of the passes, value by value: few taps add up the upper halves of products, more taps whole
// products (resize_filter.hpp).
std::vector<std::uint16_t> mixed_rows(const std::uint8_t* const* rows, const std::uint32_t* weights, int taps,
                                      std::size_t count) {
  std::vector<std::uint16_t> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t sum = taps > kFewTaps ? 128 : 0;
    for (int tap = 0; tap < taps; ++tap) {
      const std::uint32_t level = rows[tap][i];
      sum += taps > kFewTaps ? weights[tap] * level
                             : upper_half(static_cast<std::uint16_t>(level << 8), short_weight(weights[tap]));
    }
    out[i] = static_cast<std::uint16_t>(taps > kFewTaps ? sum >> 8 : sum);
  }
  return out;
}
std::vector<std::uint8_t> mixed_columns(const ResizeFilter& filter, const std::uint16_t* row) {
  std::vector<std::uint8_t> out(filter.first.size() * 3);
  const bool is_few = filter.tap_count <= kFewTaps;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint32_t sum = is_few ? 128 : 1U << 23;
    for (std::size_t tap = 0; tap < static_cast<std::size_t>(filter.tap_count); ++tap) {
      const std::uint32_t weight = filter.weights[i / 3 * static_cast<std::size_t>(filter.tap_count) + tap];
      const std::uint16_t value = row[(static_cast<std::size_t>(filter.first[i / 3]) + tap) * 3 + i % 3];
      sum += is_few ? upper_half(value, short_weight(weight)) : weight * value;
    }
    out[i] = static_cast<std::uint8_t>(sum >> (is_few ? 8 : 24));
  }
  return out;
}

// Each output of a flipped, coloured crop with bytes around it that nobody may touch.
std::vector<std::uint8_t> with_guards(const RgbView& view, PictureSize size, const ResizeOptions& options) {
  constexpr std::size_t kGuard = 100;
  const auto bytes = static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height) * 3;
  std::vector<std::uint8_t> out(bytes + 2 * kGuard, 0xa5);
  Resizer().resize(view, size.width, size.height, out.data() + kGuard, options);
  EXPECT_EQ(std::count(out.begin(), out.begin() + kGuard, 0xa5), kGuard);
  EXPECT_EQ(std::count(out.end() - kGuard, out.end(), 0xa5), kGuard);
  return {out.begin() + kGuard, out.end() - kGuard};
}

std::vector<std::uint8_t> by_definition(const RgbView& view, PictureSize size, const ResizeOptions& options) {
  ResizeFilter horizontal, vertical;
  horizontal.make(view.width, size.width);
  vertical.make(view.height, size.height);
  if (options.is_flipped) horizontal.flip();
  std::vector<std::uint8_t> out;
  for (std::size_t y = 0; y < static_cast<std::size_t>(size.height); ++y) {
    std::vector<const std::uint8_t*> rows;
    for (int tap = 0; tap < vertical.tap_count; ++tap)
      rows.push_back(view.pixels + static_cast<std::size_t>(vertical.first[y] + tap) * view.row_bytes);
    const auto row = mixed_rows(rows.data(), &vertical.weights[y * rows.size()], vertical.tap_count,
                                static_cast<std::size_t>(view.width) * 3);
    const auto pixels = mixed_columns(horizontal, row.data());
    out.insert(out.end(), pixels.begin(), pixels.end());
  }
  if (options.color == nullptr) return out;
  std::vector<std::uint8_t> coloured(out.size());
  apply_color(*options.color, out.data(), out.size() / 3, coloured.data());
  return coloured;
}

TEST(Resizer, is_its_definition_on_every_vector_unit) {
  const ColorTransform color = color_transform({0.4, 1.3, 0.7, 1.1});
  const RgbImage wide = picture("noise", 2400, 61), high = picture("noise", 67, 1501);
  test::on_each_simd_target([&] {
    RandomStream random(4, RandomPurpose::test, 0, 0);
    const auto below = [&](int end) {
      return static_cast<int>(random.below(static_cast<std::uint32_t>(end)));
    };
    const auto compare = [&](const RgbView& view, PictureSize size) {
      SCOPED_TRACE(fmt::format("{} x {} to {} x {}", view.width, view.height, size.width, size.height));
      const ResizeOptions options{below(2) == 1, below(2) == 1 ? &color : nullptr};
      EXPECT_TRUE(with_guards(view, size, options) == by_definition(view, size, options));
    };
    // One pixel, fewer levels than a vector has, odd sizes, what is not scaled, every number of taps that
    // vectors have and more, the most and the least that a group of output pixels spans.
    for (const int width :
         {1, 2, 10, 11, 21, 22, 37, 150, 299, 300, 301, 450, 599, 600, 640, 750, 899, 900, 901, 2400})
      compare(crop_of(view_of(wide), {0, 0, width, 61}), {300, 41});
    for (const int height : {1, 2, 31, 300, 301, 599, 899, 900, 1501})
      compare(crop_of(view_of(high), {0, 0, 67, height}), {29, 300});
    for (int round = 0; round < 300; ++round) {
      const RgbImage& source = round % 2 == 0 ? wide : high;
      const int left = below(source.width), top = below(source.height);
      const int right = left + 1 + below(source.width - left), bottom = top + 1 + below(source.height - top);
      compare(crop_of(view_of(source), {left, top, right, bottom}), {1 + below(330), 1 + below(40)});
    }
  });
}

// Buffers of exactly the size that is promised, and what may be read behind a row in two kinds.
TEST(Resizer, passes_keep_to_their_slack_on_every_vector_unit) {
  test::on_each_simd_target([] {
    constexpr std::size_t kGuard = 128;
    RandomStream random(7, RandomPurpose::test, 0, 0);
    for (int round = 0; round < 400; ++round) {
      const auto source_pixels = 1 + static_cast<int>(random.below(round % 4 == 0 ? 1500 : 400));
      const auto output_pixels = 1 + static_cast<int>(random.below(330));
      SCOPED_TRACE(fmt::format("{} to {}", source_pixels, output_pixels));
      ResizeFilter filter;
      filter.make(source_pixels, output_pixels);
      if (round % 2 == 0) filter.flip();

      const auto values = static_cast<std::size_t>(source_pixels) * 3;
      std::vector<std::uint16_t> row(values + ColumnMixer::kRowSlack);
      for (auto& value : row) value = static_cast<std::uint16_t>(random.below(0xff00));
      const auto bytes = static_cast<std::size_t>(output_pixels) * 3, room = bytes + ColumnMixer::kOutSlack;
      for (const bool has_zeros_behind : {false, true}) {
        std::vector<std::uint8_t> out(room + kGuard, 0xa5);
        if (has_zeros_behind)
          std::fill(row.begin() + static_cast<std::ptrdiff_t>(values), row.end(), std::uint16_t{0});
        ColumnMixer mixer;
        mixer.prepare(filter);
        mixer.mix(row.data(), out.data());
        EXPECT_EQ(std::count(out.end() - kGuard, out.end(), 0xa5), kGuard);
        out.resize(bytes);
        EXPECT_TRUE(out == mixed_columns(filter, row.data()));
      }

      // As many rows as the filter has taps, each in memory of its own.
      const auto levels = 1 + random.below(700);
      std::vector<std::vector<std::uint8_t>> rows(static_cast<std::size_t>(filter.tap_count));
      std::vector<const std::uint8_t*> places;
      for (auto& levels_of_row : rows) {
        levels_of_row.resize(levels);
        for (auto& level : levels_of_row) level = static_cast<std::uint8_t>(random.below(256));
        places.push_back(levels_of_row.data());
      }
      std::vector<std::uint16_t> mixed(levels + kGuard, 0xa5a5);
      RowMixer().mix(places.data(), filter.weights.data(), filter.tap_count, levels, mixed.data());
      EXPECT_EQ(std::count(mixed.end() - kGuard, mixed.end(), 0xa5a5), kGuard);
      mixed.resize(levels);
      EXPECT_TRUE(mixed == mixed_rows(places.data(), filter.weights.data(), filter.tap_count, levels));
    }
  });
}

TEST(Crop, refuses_rectangles_that_are_empty_or_leave_the_picture) {
  const RgbImage source = picture("noise", 4, 3);
  EXPECT_NO_THROW(crop_of(view_of(source), {0, 0, 4, 3}));
  EXPECT_THROW(crop_of(view_of(source), {2, 0, 2, 3}), ContractError);
  EXPECT_THROW(crop_of(view_of(source), {0, 0, 5, 3}), ContractError);
  EXPECT_THROW(crop_of(view_of(source), {0, -1, 4, 3}), ContractError);
}

}  // namespace
}  // namespace ssd
