// Crop decode under libFuzzer: built by Clang with -DSSD_FUZZ=ON, run as jpeg_crop_fuzzer FOLDER
// -max_total_time=600, where FOLDER holds JPEG files to begin with. Eight bytes choose the rectangle and
// damage the index of restart segments. A rectangle gives the pixels of the whole picture or an Error where
// the bytes are what they are, and anything that is no crash where the index is not that of the bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "core/error.hpp"
#include "image/jpeg_crop.hpp"
#include "image/jpeg_transcode.hpp"

namespace {

constexpr std::int64_t kMostPixels = 1 << 19;  // larger ones cost time and show nothing else
constexpr std::size_t kChoices = 8;

ssd::PixelRect rect_of(const std::uint8_t* choice, const ssd::PictureSize& size) {
  const auto ends = [](int a, int b, int length) {
    return std::pair{std::min(a, b) * length / 256, std::max(a, b) * length / 256 + 1};
  };
  const auto [left, right] = ends(choice[0], choice[1], size.width);
  const auto [top, bottom] = ends(choice[2], choice[3], size.height);
  return {left, top, std::min(right, size.width), std::min(bottom, size.height)};
}

void expect_equal(const ssd::RgbView& a, const ssd::RgbView& b) {
  bool is_equal = a.width == b.width && a.height == b.height;
  for (int y = 0; is_equal && y < a.height; ++y) {
    const auto row = static_cast<std::size_t>(y);
    is_equal = std::equal(a.pixels + row * a.row_bytes, a.pixels + row * a.row_bytes + 3 * a.width,
                          b.pixels + row * b.row_bytes);
  }
  if (!is_equal) throw std::logic_error("other pixels than those of the whole picture");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static ssd::JpegDecoder decoder;
  static ssd::JpegCropDecoder crop_decoder;
  static ssd::JpegTranscoder transcoder;
  static ssd::RgbImage whole;
  if (size < kChoices) return 0;
  const auto bytes = std::as_bytes(std::span(data + kChoices, size - kChoices));
  try {
    const auto info = decoder.read_info(bytes);
    if (std::int64_t{info.width} * info.height > kMostPixels) return 0;
    const ssd::PictureSize picture{info.width, info.height};
    const auto rect = rect_of(data, picture);
    // The bytes as they are, with an index made up of them.
    const std::uint32_t offsets[] = {data[4] * 256U + data[5], data[6] * 256U + data[7]};
    crop_decoder.decode(bytes, {data[4], offsets}, picture, rect);
    const int warnings = decoder.decode(bytes, whole);
    auto anew = transcoder.transcode(bytes, whole, warnings);
    if (anew.outcome != ssd::Transcoding::done) return 0;
    const auto expected = crop_of(view_of(whole), rect);
    expect_equal(crop_decoder.decode(bytes, {}, picture, rect), expected);
    // No comparison: fuzzers make coefficients of more than 16 bits (see SegmentDecoder).
    crop_decoder.decode(anew.bytes, {anew.restart_interval, anew.restart_offsets}, picture, rect);
    // One byte or one offset of the new encoding damaged.
    anew.bytes[(data[4] * 256U + data[5]) % anew.bytes.size()] = static_cast<std::byte>(data[6]);
    if (data[7] != 0) anew.restart_offsets[data[7] % anew.restart_offsets.size()] += data[6];
    crop_decoder.decode(anew.bytes, {anew.restart_interval, anew.restart_offsets}, picture, rect);
  } catch (const ssd::Error&) {
  }
  return 0;
}
