// PNG, WebP and BMP of every kind, against the levels that they were made of; what is damaged or of another
// format is refused by name.
#include "image/picture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/random.hpp"
#include "support/files.hpp"
#include "support/made_pictures.hpp"

namespace ssd {
namespace {

using Levels = std::vector<std::uint8_t>;
using testing::HasSubstr;

std::uint8_t over_white(unsigned level, unsigned alpha) {
  return static_cast<std::uint8_t>((level * alpha + 255 * (255 - alpha) + 127) / 255);
}

TEST(DecodePicture, U12_png_of_every_colour_type_gives_its_levels) {
  using test::make_png;
  EXPECT_EQ(decode_picture(make_png({2, 1, 8, PNG_COLOR_TYPE_RGB, {1, 2, 3, 4, 5, 6}})).image.pixels,
            (Levels{1, 2, 3, 4, 5, 6}));
  const auto gray = decode_picture(make_png({2, 1, 8, PNG_COLOR_TYPE_GRAY, {7, 200}}));
  EXPECT_EQ(gray.image.pixels, (Levels{7, 7, 7, 200, 200, 200}));
  EXPECT_TRUE(gray.is_gray);
  EXPECT_FALSE(gray.has_alpha);
  // 1, 2 and 4 bits: spread over 0 to 255.
  EXPECT_EQ(decode_picture(make_png({3, 1, 1, PNG_COLOR_TYPE_GRAY, {0b10100000}})).image.pixels,
            (Levels{255, 255, 255, 0, 0, 0, 255, 255, 255}));
  EXPECT_EQ(decode_picture(make_png({2, 1, 4, PNG_COLOR_TYPE_GRAY, {0x1f}})).image.pixels,
            (Levels{17, 17, 17, 255, 255, 255}));
  // 16 bits: 257 of them make one of 255.
  const auto deep = decode_picture(make_png({2, 1, 16, PNG_COLOR_TYPE_GRAY, {0x80, 0x80, 0xff, 0xff}}));
  EXPECT_EQ(deep.image.pixels, (Levels{128, 128, 128, 255, 255, 255}));
  EXPECT_TRUE(deep.is_gray);
  const auto alpha =
      decode_picture(make_png({2, 1, 8, PNG_COLOR_TYPE_RGBA, {10, 20, 30, 128, 1, 2, 3, 255}}));
  EXPECT_EQ(alpha.image.pixels,
            (Levels{over_white(10, 128), over_white(20, 128), over_white(30, 128), 1, 2, 3}));
  EXPECT_TRUE(alpha.has_alpha);
  EXPECT_FALSE(decode_picture(make_png({1, 1, 8, PNG_COLOR_TYPE_RGBA, {10, 20, 30, 255}})).has_alpha);
  EXPECT_EQ(decode_picture(make_png({1, 1, 8, PNG_COLOR_TYPE_GRAY_ALPHA, {9, 0}})).image.pixels,
            (Levels{255, 255, 255}));
  test::PngToMake palette{
      3, 1, 2, PNG_COLOR_TYPE_PALETTE, {0b00011000}, {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}, {255, 0}};
  const auto indexed = decode_picture(make_png(palette));
  EXPECT_EQ(indexed.image.pixels, (Levels{1, 2, 3, 255, 255, 255, 7, 8, 9}));
  EXPECT_TRUE(indexed.has_alpha);
  EXPECT_FALSE(indexed.is_gray);
}

TEST(DecodePicture, U12_png_is_read_interlaced_and_with_its_orientation) {
  RandomStream random(2, RandomPurpose::test, 0, 0);
  test::PngToMake made{13, 9, 8, PNG_COLOR_TYPE_RGB, Levels(13 * 9 * 3)};
  for (auto& level : made.rows) level = static_cast<std::uint8_t>(random.below(256));
  made.is_interlaced = true;
  made.exif = test::exif_of(6);
  const auto picture = decode_picture(test::make_png(made));
  EXPECT_EQ(picture.image.pixels, made.rows);
  EXPECT_EQ(picture.image.width, 13);
  EXPECT_EQ(picture.image.height, 9);
  EXPECT_EQ(picture.orientation, 6);
}

TEST(DecodePicture, U12_webp_gives_its_levels_over_white) {
  const auto opaque = decode_picture(test::make_webp(2, 1, {1, 2, 3, 255, 4, 5, 6, 255}));
  EXPECT_EQ(opaque.image.pixels, (Levels{1, 2, 3, 4, 5, 6}));
  EXPECT_FALSE(opaque.has_alpha);
  const auto alpha = decode_picture(test::make_webp(2, 1, {10, 20, 30, 64, 4, 5, 6, 255}, test::exif_of(8)));
  EXPECT_EQ(alpha.image.pixels,
            (Levels{over_white(10, 64), over_white(20, 64), over_white(30, 64), 4, 5, 6}));
  EXPECT_TRUE(alpha.has_alpha);
  EXPECT_EQ(alpha.orientation, 8);
}

TEST(DecodePicture, U12_bmp_of_every_depth_gives_its_levels) {
  using test::make_bmp;
  // Two rows, the lower one first, each filled up to four bytes.
  EXPECT_EQ(decode_picture(make_bmp(1, 2, 24, {3, 2, 1, 0, 6, 5, 4, 0})).image.pixels,
            (Levels{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(decode_picture(make_bmp(1, -2, 24, {3, 2, 1, 0, 6, 5, 4, 0})).image.pixels,
            (Levels{1, 2, 3, 4, 5, 6}));
  const Levels palette{3, 2, 1, 0, 6, 5, 4, 0};
  EXPECT_EQ(decode_picture(make_bmp(2, 1, 8, {1, 0, 0, 0}, palette)).image.pixels,
            (Levels{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(decode_picture(make_bmp(2, 1, 4, {0x10, 0, 0, 0}, palette)).image.pixels,
            (Levels{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(decode_picture(make_bmp(3, 1, 1, {0b10100000, 0, 0, 0}, palette)).image.pixels,
            (Levels{4, 5, 6, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(decode_picture(make_bmp(1, 1, 16, {0xff, 0x7f, 0, 0})).image.pixels, (Levels{255, 255, 255}));
  // The fourth byte is no alpha.
  const auto four = decode_picture(make_bmp(2, 1, 32, {3, 2, 1, 9, 6, 5, 4, 0}));
  EXPECT_EQ(four.image.pixels, (Levels{1, 2, 3, 4, 5, 6}));
  EXPECT_FALSE(four.has_alpha);
}

std::string refusal(std::span<const std::byte> bytes) {
  return message_of<Error>([&] { decode_picture(bytes); });
}
std::vector<std::byte> bytes_from(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(DecodePicture, U12_other_formats_are_refused_by_name) {
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(refusal(bytes_from("\0\0\0\x18"
                               "ftypheic\0\0\0\0"sv)),
            "a HEIC picture; JPEG, PNG, WebP and BMP are read");
  EXPECT_THAT(refusal(bytes_from("GIF89a")), HasSubstr("a GIF picture"));
  EXPECT_THAT(refusal(bytes_from("II*\0abcd"sv)), HasSubstr("a TIFF picture"));
  EXPECT_THAT(refusal(bytes_from("\0\0\0\x1c"
                                 "ftypavif"sv)),
              HasSubstr("an AVIF picture"));
  EXPECT_THAT(refusal(bytes_from("<!DOCTYPE html>")), HasSubstr("an HTML page"));
  EXPECT_THAT(refusal(bytes_from("\x01\x02\x03\x04")),
              HasSubstr("of no known format (it begins with 01 02 03 04)"));
  EXPECT_THAT(refusal({}), HasSubstr("an empty file"));
  EXPECT_THAT(refusal(test::make_bmp(2, 1, 8, {1, 0, 0, 0}, Levels(1024), 1)),
              HasSubstr("a compressed BMP (kind 1)"));
}

// Whatever is cut off or changed: a picture or an Error, and nothing else (sanitizers tell).
TEST(DecodePicture, U12_damaged_files_give_errors) {
  RandomStream random(3, RandomPurpose::test, 0, 0);
  test::PngToMake made{40, 30, 8, PNG_COLOR_TYPE_RGBA, Levels(40 * 30 * 4)};
  for (auto& level : made.rows) level = static_cast<std::uint8_t>(random.below(256));
  const std::vector<std::vector<std::byte>> files{test::make_png(made), test::make_webp(40, 30, made.rows),
                                                  test::make_bmp(40, 30, 32, made.rows)};
  const auto below = [&](std::size_t end) { return random.below(static_cast<std::uint32_t>(end)); };
  for (const auto& file : files) {
    for (const std::size_t missing : {std::size_t{1}, file.size() / 2, file.size() - 12}) {
      const auto cut = std::span(file).first(file.size() - missing);
      EXPECT_NE(refusal(cut), "") << missing;
    }
    for (int round = 0; round < 300; ++round) {
      auto bytes = file;
      for (auto i = below(4) + 1; i > 0; --i)
        bytes[8 + below(bytes.size() - 8)] = static_cast<std::byte>(below(256));
      try {
        const auto picture = decode_picture(bytes);
        EXPECT_EQ(picture.image.pixels.size(), static_cast<std::size_t>(picture.image.width) *
                                                   static_cast<std::size_t>(picture.image.height) * 3);
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace
}  // namespace ssd
