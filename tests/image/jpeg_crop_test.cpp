// Rectangles decoded alone against rectangles cut out of the whole picture: photos and every odd file that
// can be decoded, as they are and encoded anew with restart markers.
#include "image/jpeg_crop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/random.hpp"
#include "image/jpeg_transcode.hpp"
#include "image/orientation.hpp"
#include "support/encode_jpeg.hpp"
#include "support/files.hpp"
#include "support/simd_targets.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kData = SSD_TEST_DATA;
const bool kIsLong = std::getenv("SSD_TEST_LONG") != nullptr;

std::vector<fs::path> jpegs_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::uint8_t> pixels_of(const RgbView& view) {
  std::vector<std::uint8_t> pixels;
  const auto row_bytes = static_cast<std::size_t>(view.width) * 3;
  for (std::size_t y = 0; y < static_cast<std::size_t>(view.height); ++y)
    pixels.insert(pixels.end(), view.pixels + y * view.row_bytes,
                  view.pixels + y * view.row_bytes + row_bytes);
  return pixels;
}

std::pair<int, int> draw_ends(RandomStream& random, int size) {
  const int a = static_cast<int>(random.below(static_cast<std::uint32_t>(size)));
  const int b = static_cast<int>(random.below(static_cast<std::uint32_t>(size)));
  return {std::min(a, b), std::max(a, b) + 1};
}

// Any rectangle, and now and then one that ends with the picture.
PixelRect draw_rect(RandomStream& random, int width, int height) {
  auto [left, right] = draw_ends(random, width);
  auto [top, bottom] = draw_ends(random, height);
  if (random.below(4) == 0) left = 0;
  if (random.below(4) == 0) right = width;
  if (random.below(4) == 0) top = 0;
  if (random.below(4) == 0) bottom = height;
  return {left, top, right, bottom};
}

RestartIndex index_of(const TranscodedJpeg& jpeg) {
  return {jpeg.restart_interval, jpeg.restart_offsets};
}

std::string text_of_rect(const PixelRect& rect) {
  return fmt::format("{} {} {} {}", rect.left, rect.top, rect.right, rect.bottom);
}

// Returns whether the file could be encoded anew.
bool expect_cuts(const fs::path& path, int rectangles) {
  SCOPED_TRACE(path.filename());
  const auto source = bytes_of(path);
  RgbImage whole;
  const int warnings = JpegDecoder().decode(source, whole);
  const auto anew = JpegTranscoder().transcode(source, whole, warnings);
  const PictureSize size{whole.width, whole.height};
  JpegCropDecoder decoder;
  RandomStream random(1, RandomPurpose::test, 0, whole.pixels.size());
  for (int i = 0; i < rectangles; ++i) {
    const PixelRect rect = draw_rect(random, whole.width, whole.height);
    const auto expected = pixels_of(crop_of(view_of(whole), rect));
    EXPECT_TRUE(pixels_of(decoder.decode(source, {}, size, rect)) == expected)
        << "as it is: " << text_of_rect(rect);
    if (anew.outcome != Transcoding::done) continue;
    EXPECT_TRUE(pixels_of(decoder.decode(anew.bytes, index_of(anew), size, rect)) == expected)
        << "restart segments: " << text_of_rect(rect);
    SplicedJpeg spliced;
    EXPECT_TRUE(splice_jpeg(anew.bytes, index_of(anew), size, rect, spliced));
  }
  return anew.outcome == Transcoding::done;
}

TEST(JpegCropDecoder, gives_the_pixels_of_the_whole_picture_for_photos) {
  const int rectangles = kIsLong ? 200 : 8;
  test::on_each_simd_target([&] {
    for (const auto* folder : {"coco_free/train2017", "coco_free/val2017"}) {
      for (const auto& path : jpegs_in(kData / folder)) EXPECT_TRUE(expect_cuts(path, rectangles));
    }
  });
}

TEST(JpegCropDecoder, gives_the_pixels_of_the_whole_picture_for_odd_files) {
  const int rectangles = kIsLong ? 300 : 12;
  test::on_each_simd_target([&] {
    int anew = 0, files = 0;
    for (const auto* folder : {"ok", "exif"}) {
      for (const auto& path : jpegs_in(kData / "jpeg_nasty" / folder)) {
        anew += expect_cuts(path, rectangles);
        ++files;
      }
    }
    EXPECT_GT(anew, files * 3 / 4);
  });
}

TranscodedJpeg encoded_anew(const fs::path& path, RgbImage& pixels) {
  const auto source = bytes_of(path);
  const int warnings = JpegDecoder().decode(source, pixels);
  return JpegTranscoder().transcode(source, pixels, warnings);
}

bool decodes_itself(const fs::path& path) {
  RgbImage pixels;
  const auto anew = encoded_anew(path, pixels);
  std::vector<std::uint8_t> buffer;
  const RgbView view =
      SegmentDecoder().decode(anew.bytes, anew.restart_offsets, {pixels.width, pixels.height},
                              {0, 0, pixels.width, pixels.height}, buffer);
  return view.pixels != nullptr;
}

TEST(SegmentDecoder, decodes_photos_itself_and_leaves_rare_files_to_libjpeg) {
  for (const auto& path : jpegs_in(kData / "coco_free/train2017")) EXPECT_TRUE(decodes_itself(path)) << path;
  for (const auto* file :
       {"hopper_gray.jpg", "testorig.jpg", "non_interleaved_422_64x64.jpg", "gen_440_1x2_dri7.jpg"})
    EXPECT_TRUE(decodes_itself(kData / "jpeg_nasty/ok" / file)) << file;
  for (const auto* file : {"gen_411_4x1.jpg", "fox_410_4x2.jpg", "sampling_2x2_1x2_1x2.jpg",
                           "adobe_rgb_no_ycc.jpg", "moz-cmyk-1.jpg", "moz-size-3x3.jpg"})
    EXPECT_FALSE(decodes_itself(kData / "jpeg_nasty/ok" / file)) << file;
}

// Noise of the best quality, whose sums leave the usual range; every width that ends a block, a row of chroma
// or a vector otherwise, and any rectangle.
TEST(SegmentDecoder, gives_the_pixels_of_the_whole_picture_for_every_sampling_and_size) {
  test::on_each_simd_target([] {
    RandomStream random(11, RandomPurpose::test, 0, 0);
    const auto below = [&](int end) {
      return static_cast<int>(random.below(static_cast<std::uint32_t>(end)));
    };
    JpegCropDecoder decoder;
    int decoded = 0, files = 0;
    for (int round = 0; round < (kIsLong ? 2000 : 200); ++round) {
      RgbImage image{1 + below(round % 8 == 0 ? 300 : 70), 1 + below(60), {}};
      image.pixels.resize(static_cast<std::size_t>(image.width * image.height) * 3);
      for (auto& level : image.pixels)
        level = static_cast<std::uint8_t>(round % 3 == 0 ? random.below(2) * 255 : random.below(256));
      const int horizontal = 1 + round % 2, vertical = 1 + round / 2 % 2;
      SCOPED_TRACE(
          fmt::format("{}: {} x {}, {} x {}", round, image.width, image.height, horizontal, vertical));
      const auto source = test::encode_jpeg(image, horizontal, vertical);
      RgbImage whole;
      ASSERT_EQ(JpegDecoder().decode(source, whole), 0);
      const auto made = JpegTranscoder().transcode(source, whole, 0);
      if (made.outcome != Transcoding::done) continue;
      ++files;
      const PictureSize size{whole.width, whole.height};
      for (int i = 0; i < 8; ++i) {
        const PixelRect rect =
            i == 0 ? PixelRect{0, 0, size.width, size.height} : draw_rect(random, size.width, size.height);
        std::vector<std::uint8_t> buffer;
        const RgbView view = SegmentDecoder().decode(made.bytes, made.restart_offsets, size, rect, buffer);
        if (view.pixels == nullptr) continue;
        ++decoded;
        ASSERT_TRUE(pixels_of(view) == pixels_of(crop_of(view_of(whole), rect))) << text_of_rect(rect);
      }
    }
    EXPECT_GT(files, (kIsLong ? 2000 : 200) * 9 / 10);
    EXPECT_GT(decoded, files * 8 * 9 / 10);
  });
}

// Bits that fill up a byte may be left at a segment's end; a whole byte is damage, and libjpeg's.
TEST(SegmentDecoder, leaves_a_segment_with_a_byte_too_many_to_libjpeg) {
  RgbImage pixels;
  const auto anew = encoded_anew(kData / "coco_free/train2017/000000000030.jpg", pixels);
  const auto& offsets = anew.restart_offsets;
  std::vector<std::uint8_t> buffer;
  const auto decodes_itself_with = [&](std::size_t segment, std::byte added) {
    // Before the marker that follows the segment.
    const auto end = segment + 1 < offsets.size() ? offsets[segment + 1] - 2 : anew.bytes.size() - 2;
    auto bytes = anew.bytes;
    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(end), added);
    auto shifted = offsets;
    for (std::size_t i = segment + 1; i < shifted.size(); ++i) ++shifted[i];
    const PixelRect whole{0, 0, pixels.width, pixels.height};
    return SegmentDecoder().decode(bytes, shifted, {pixels.width, pixels.height}, whole, buffer).pixels !=
           nullptr;
  };
  for (const std::size_t segment : {std::size_t{0}, offsets.size() / 2, offsets.size() - 1}) {
    for (const auto added : {std::byte{0x7f}, std::byte{0}})
      EXPECT_FALSE(decodes_itself_with(segment, added));
  }
}

TEST(JpegCropDecoder, refuses_a_picture_of_another_size) {
  RgbImage pixels;
  const auto anew = encoded_anew(kData / "coco_free/train2017/000000000030.jpg", pixels);
  const PictureSize other{pixels.width - 1, pixels.height};
  const auto expected =
      fmt::format("{}x{} pixels, not of {}x{}", pixels.width, pixels.height, other.width, other.height);
  for (const auto& index : {RestartIndex{}, index_of(anew)}) {
    EXPECT_THAT(message_of<Error>([&] {
                  JpegCropDecoder().decode(anew.bytes, index, other, {0, 0, 8, 8});
                }),
                HasSubstr(expected));
  }
}

// Whatever the bytes and the index hold: pixels or an Error, never those of a neighbour's memory (sanitizers
// tell), and the next picture is whole again.
TEST(JpegCropDecoder, survives_damaged_bytes_and_indices) {
  RgbImage pixels;
  const auto anew = encoded_anew(kData / "jpeg_nasty/ok/hopper.jpg", pixels);
  RgbImage photo;
  const auto photo_anew = encoded_anew(kData / "coco_free/train2017/000000000092.jpg", photo);
  JpegCropDecoder decoder;
  RandomStream random(5, RandomPurpose::test, 0, 0);
  const auto below = [&](std::size_t bound) { return random.below(static_cast<std::uint32_t>(bound)); };
  const int rounds = kIsLong ? 20000 : 400;
  int decoded = 0;
  for (int round = 0; round < rounds; ++round) {
    const bool is_photo = round % 2 == 0;
    TranscodedJpeg jpeg = is_photo ? photo_anew : anew;
    const RgbImage& whole = is_photo ? photo : pixels;
    const PictureSize size{whole.width, whole.height};
    const std::size_t headers = jpeg.restart_offsets[0];
    for (std::uint32_t i = below(4); i > 0; --i) {
      const bool in_headers = below(3) == 0;
      jpeg.bytes[in_headers ? below(headers) : below(jpeg.bytes.size())] = static_cast<std::byte>(below(256));
    }
    if (below(3) == 0) jpeg.bytes.resize(below(jpeg.bytes.size()));
    if (below(3) == 0)
      jpeg.restart_offsets[below(jpeg.restart_offsets.size())] = random.next_u32() >> below(32);
    if (below(9) == 0) jpeg.restart_offsets.resize(below(jpeg.restart_offsets.size()));
    if (below(9) == 0) jpeg.restart_interval = below(20);
    try {
      (void)pixels_of(
          decoder.decode(jpeg.bytes, index_of(jpeg), size, draw_rect(random, size.width, size.height)));
      ++decoded;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(decoded, rounds / 2);
  const PixelRect all{0, 0, photo.width, photo.height};
  EXPECT_TRUE(pixels_of(decoder.decode(photo_anew.bytes, index_of(photo_anew), {photo.width, photo.height},
                                       all)) == photo.pixels);
}

TEST(StoredRect, holds_the_pixels_of_the_upright_rectangle) {
  RandomStream random(3, RandomPurpose::test, 0, 0);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    RgbImage stored{13, 7, std::vector<std::uint8_t>(13 * 7 * 3)};
    for (auto& level : stored.pixels) level = static_cast<std::uint8_t>(random.below(256));
    const RgbImage upright = apply_orientation(stored, orientation);
    const PictureSize size{upright.width, upright.height};
    EXPECT_EQ(stored_size(size, orientation), (PictureSize{13, 7}));
    for (int i = 0; i < 50; ++i) {
      const PixelRect rect = draw_rect(random, upright.width, upright.height);
      std::vector<std::uint8_t> buffer;
      const RgbView part = crop_of(view_of(stored), stored_rect(rect, orientation, size));
      EXPECT_EQ(pixels_of(apply_orientation(part, orientation, buffer)),
                pixels_of(crop_of(view_of(upright), rect)));
    }
  }
}

}  // namespace
}  // namespace ssd
