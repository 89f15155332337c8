// Rectangles decoded alone against rectangles cut out of the whole picture: photos and every odd file that can
// be decoded, as they are and encoded anew with restart markers.
#include "image/jpeg_crop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/random.hpp"
#include "image/jpeg_transcode.hpp"
#include "image/orientation.hpp"
#include "support/files.hpp"

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
    pixels.insert(pixels.end(), view.pixels + y * view.row_bytes, view.pixels + y * view.row_bytes + row_bytes);
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
    EXPECT_TRUE(pixels_of(decoder.decode(source, {}, size, rect)) == expected) << "as it is: " << text_of_rect(rect);
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
  for (const auto* folder : {"coco_free/train2017", "coco_free/val2017"}) {
    for (const auto& path : jpegs_in(kData / folder)) EXPECT_TRUE(expect_cuts(path, rectangles));
  }
}

TEST(JpegCropDecoder, gives_the_pixels_of_the_whole_picture_for_odd_files) {
  const int rectangles = kIsLong ? 300 : 12;
  int anew = 0, files = 0;
  for (const auto* folder : {"ok", "exif"}) {
    for (const auto& path : jpegs_in(kData / "jpeg_nasty" / folder)) {
      anew += expect_cuts(path, rectangles);
      ++files;
    }
  }
  EXPECT_GT(anew, files * 3 / 4);
}

}  // namespace
}  // namespace ssd
