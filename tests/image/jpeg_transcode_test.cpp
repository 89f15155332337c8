// What becomes of each file of tests/data/jpeg_nasty when it is encoded anew, and what the new bytes promise.
#include "image/jpeg_transcode.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
// jpeglib.h wants FILE declared before it.
#include <jpeglib.h>

#include "core/error.hpp"
#include "image/jpeg_crop.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

const fs::path kData = SSD_TEST_DATA;
const fs::path kFolder = kData / "jpeg_nasty";

constexpr auto kSequential = JpegCoding::sequential;
constexpr auto kProgressive = JpegCoding::progressive;
constexpr auto kArithmetic = JpegCoding::arithmetic;

struct Row {
  const char* file;
  std::optional<Transcoding> outcome;  // nothing: the decoder refuses it
  JpegCoding coding = kSequential;
  std::uint32_t interval = 0;  // MCUs
};

const Row kTable[] = {
    {"exif/camera_420.jpg", Transcoding::done, kSequential, 7},
    {"exif/camera_440_1x2.jpg", Transcoding::done, kSequential, 13},
    {"exif/empty_gps_ifd.jpg", Transcoding::done, kSequential, 1},
    {"exif/invalid-exif.jpg", Transcoding::done, kSequential, 5},
    {"exif/multiple_exif.jpg", Transcoding::done, kSequential, 1},
    {"exif/orientation8_2x1.jpg", Transcoding::done, kSequential, 1},
    {"exif/orientation_2.jpg", Transcoding::done, kSequential, 8},
    {"exif/orientation_3.jpg", Transcoding::done, kSequential, 8},
    {"exif/orientation_4.jpg", Transcoding::done, kSequential, 8},
    {"exif/orientation_5.jpg", Transcoding::done, kSequential, 8},
    {"exif/orientation_6.jpg", Transcoding::done, kSequential, 8},
    {"exif/orientation_7.jpg", Transcoding::done, kSequential, 8},
    {"exif/orientation_8.jpg", Transcoding::done, kSequential, 8},
    {"exif/truncated_exif_dpi.jpg", Transcoding::done, kSequential, 15},
    {"notjpeg/png_named.jpg", {}},
    {"ok/16bit-qtables.jpg", Transcoding::done, kSequential, 1},
    {"ok/adobe_cmyk_600x397.jpg", Transcoding::done, kSequential, 15},
    {"ok/adobe_rgb_no_ycc.jpg", Transcoding::done, kSequential, 9},
    {"ok/app13_dri1_4x4.jpg", Transcoding::done, kSequential, 1},
    {"ok/arithmetic_sof9.jpg", Transcoding::done, kArithmetic, 5},
    {"ok/blank_800x280.jpg", Transcoding::done, kSequential, 100},
    {"ok/component_id_236.jpg", Transcoding::done, kSequential, 10},
    {"ok/fill_bytes_before_marker_prog.jpg", Transcoding::done, kProgressive, 5},
    {"ok/fill_ff_before_eoi.jpg", Transcoding::done, kSequential, 20},
    {"ok/fox_410_4x2.jpg", Transcoding::done, kSequential, 1},
    {"ok/gen_411_4x1.jpg", Transcoding::done, kSequential, 4},
    {"ok/gen_440_1x2_dri7.jpg", Transcoding::done, kSequential, 29},
    {"ok/gray_2x2_progressive.jpg", Transcoding::done, kProgressive, 113},
    {"ok/grayscale_16x24_sampling2x2.jpg", Transcoding::done, kSequential, 2},
    {"ok/grayscale_24x16_sampling2x2.jpg", Transcoding::done, kSequential, 3},
    {"ok/grayscale_large.jpg", Transcoding::done, kSequential, 25},
    {"ok/grayscale_long.jpg", Transcoding::done, kSequential, 1},
    {"ok/grayscale_square.jpg", Transcoding::done, kSequential, 2},
    {"ok/hopper.jpg", Transcoding::done, kSequential, 8},
    {"ok/hopper_gray.jpg", Transcoding::done, kSequential, 16},
    {"ok/hopper_sof1_16bit_qtables.jpg", Transcoding::done, kSequential, 8},
    {"ok/icc-after-SOF.jpg", Transcoding::done, kSequential, 2},
    {"ok/moz-cmyk-1.jpg", Transcoding::done, kSequential, 4},
    {"ok/moz-cmyk-2.jpg", Transcoding::done, kSequential, 8},
    {"ok/moz-gray.jpg", Transcoding::done, kSequential, 4},
    {"ok/moz-progressive.jpg", Transcoding::done, kProgressive, 2},
    {"ok/moz-size-15x15.jpg", Transcoding::done, kSequential, 1},
    {"ok/moz-size-16x16.jpg", Transcoding::done, kSequential, 1},
    {"ok/moz-size-17x17.jpg", Transcoding::done, kSequential, 2},
    {"ok/moz-size-1x1.jpg", Transcoding::done, kSequential, 1},
    {"ok/moz-size-2x2.jpg", Transcoding::done, kSequential, 1},
    {"ok/moz-size-31x31.jpg", Transcoding::done, kSequential, 2},
    {"ok/moz-size-32x32.jpg", Transcoding::done, kSequential, 2},
    {"ok/moz-size-33x33.jpg", Transcoding::done, kSequential, 3},
    {"ok/moz-size-3x3.jpg", Transcoding::done, kSequential, 1},
    {"ok/moz-size-7x7.jpg", Transcoding::done, kSequential, 1},
    {"ok/moz-size-8x8.jpg", Transcoding::done, kSequential, 1},
    {"ok/moz-size-9x9.jpg", Transcoding::done, kSequential, 1},
    {"ok/moz-srgb-icc.jpg", Transcoding::done, kSequential, 1},
    {"ok/mpo_multi_frame.jpg", Transcoding::done, kSequential, 4},
    {"ok/non-interleaved-mcu.jpg", Transcoding::done, kProgressive, 4},
    {"ok/non_interleaved_420_64x64.jpg", Transcoding::done, kSequential, 4},
    {"ok/non_interleaved_422_64x64.jpg", Transcoding::done, kSequential, 4},
    {"ok/non_interleaved_440_64x64.jpg", Transcoding::done, kSequential, 8},
    {"ok/non_interleaved_444_64x64.jpg", Transcoding::done, kSequential, 8},
    {"ok/progressive3.jpg", Transcoding::done, kProgressive, 41},
    {"ok/restarts.jpg", Transcoding::done, kSequential, 5},
    {"ok/rgb_2x2_2x2_1x1_prog.jpg", Transcoding::done, kProgressive, 2},
    {"ok/sampling_1x2_all.jpg", Transcoding::done, kSequential, 15},
    {"ok/sampling_2x2_1x2_1x2.jpg", Transcoding::done, kSequential, 5},
    {"ok/testimgint.jpg", Transcoding::done, kSequential, 5},
    {"ok/testorig.jpg", Transcoding::done, kSequential, 5},
    {"ok/tiny_non_interleaved_444.jpg", Transcoding::done, kSequential, 2},
    {"ok/ycck_100x100.jpg", Transcoding::done, kSequential, 13},
    {"ok/ycck_dri_1318x611.jpg", Transcoding::done, kSequential, 15},
    {"reject/bomb_12336x12336_lossless12.jpg", {}},
    {"reject/bomb_35584x18696_arith_2comp.jpg", {}},
    {"reject/bomb_3617x64508_arithprog_4comp.jpg", {}},
    {"reject/derive-huffman-codes-overflow.jpg", {}},
    {"reject/empty.jpg", {}},
    {"reject/invalid-dimensions.jpg", {}},
    {"reject/lossless_16bit_gray_sof3.jpg", {}},
    {"reject/lossless_rgb_100x100.jpg", {}},
    {"reject/max_size.jpg", {}},
    {"reject/missing-frame-image-1410.jpg", {}},
    {"reject/missing-sof.jpg", {}},
    {"reject/missing-sos.jpg", {}},
    {"reject/null_height.jpg", {}},
    {"reject/precision12_sof1.jpg", {}},
    {"reject/trunc300_headers_only.jpg", {}},
    {"warn/dc-predictor-overflow.jpg", Transcoding::damaged, kSequential, 0},
    {"warn/extraneous-data.jpg", Transcoding::damaged, kSequential, 0},
    {"warn/junk_in_header_1024x768.jpg", Transcoding::damaged, kSequential, 0},
    {"warn/mjpeg_frame.jpg", Transcoding::damaged, kSequential, 0},
    {"warn/partial_progressive.jpg", Transcoding::damaged, kProgressive, 0},
    {"warn/progressive-missing-ac.jpg", Transcoding::done, kProgressive, 1},
    {"warn/progressive-missing-dc.jpg", Transcoding::damaged, kProgressive, 0},
    {"warn/progressive_corrupt_546x340.jpg", Transcoding::damaged, kProgressive, 0},
    {"warn/trunc3000_testorig.jpg", Transcoding::damaged, kSequential, 0},
    {"warn/truncated_app14.jpg", Transcoding::damaged, kSequential, 0},
    {"warn/truncated_progressive_100x100.jpg", Transcoding::damaged, kProgressive, 0},
    {"warn/ultrahdr_truncated_1512x2688.jpg", Transcoding::damaged, kSequential, 0},
};

using Bytes = std::span<const std::byte>;

unsigned at(Bytes jpeg, std::size_t i) {
  return std::to_integer<unsigned>(jpeg[i]);
}

// The segments of the table of markers, each with its place: SOI and what follows the scan are left out.
std::vector<std::pair<unsigned, std::size_t>> markers_of(Bytes jpeg) {
  std::vector<std::pair<unsigned, std::size_t>> markers;
  for (std::size_t place = 2; at(jpeg, place) == 0xFF;
       place += 2 + (at(jpeg, place + 2) << 8 | at(jpeg, place + 3))) {
    markers.emplace_back(at(jpeg, place + 1), place);
    if (markers.back().first == 0xDA) break;
  }
  return markers;
}

// What jpeg_transcode.hpp promises of a new encoding.
void expect_promises(const TranscodedJpeg& jpeg, const RgbImage& expected) {
  const Bytes bytes = jpeg.bytes;
  JpegDecoder decoder;
  RgbImage pixels;
  EXPECT_EQ(decoder.decode(bytes, pixels), 0);
  EXPECT_EQ(pixels.width, expected.width);
  EXPECT_EQ(pixels.height, expected.height);
  EXPECT_TRUE(pixels.pixels == expected.pixels);
  EXPECT_EQ(read_jpeg_info(bytes).orientation, 1);

  std::size_t frame = 0, scan = 0;
  std::uint32_t interval = 0;
  for (const auto& [marker, place] : markers_of(bytes)) {
    // DQT, DHT, DRI, SOF0 or SOF1, SOS, JFIF, Adobe: nothing else.
    EXPECT_TRUE((std::set<unsigned>{0xDB, 0xC4, 0xDD, 0xC0, 0xC1, 0xDA, 0xE0, 0xEE}.contains(marker)))
        << marker;
    if (marker == 0xC0 || marker == 0xC1) frame = place;
    if (marker == 0xDD) interval = at(bytes, place + 4) << 8 | at(bytes, place + 5);
    if (marker == 0xDA) scan = place;
  }
  ASSERT_TRUE(frame != 0 && scan != 0);
  EXPECT_EQ(interval, jpeg.restart_interval);
  const auto components = at(bytes, frame + 9);
  EXPECT_EQ(at(bytes, scan + 4), components);  // one scan of all
  unsigned h = 1, v = 1;
  for (std::size_t c = 0; c < components && components > 1; ++c) {
    h = std::max(h, at(bytes, frame + 11 + 3 * c) >> 4);
    v = std::max(v, at(bytes, frame + 11 + 3 * c) & 15U);
  }
  const auto columns = (static_cast<unsigned>(expected.width) + 8 * h - 1) / (8 * h);
  const auto rows = (static_cast<unsigned>(expected.height) + 8 * v - 1) / (8 * v);
  EXPECT_EQ(columns % jpeg.restart_interval, 0U);
  const auto& offsets = jpeg.restart_offsets;
  ASSERT_EQ(offsets.size(), rows * (columns / jpeg.restart_interval));
  EXPECT_EQ(offsets[0], scan + 2 + (at(bytes, scan + 2) << 8 | at(bytes, scan + 3)));
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    ASSERT_GT(offsets[i], offsets[i - 1] + 2);
    ASSERT_EQ(at(bytes, offsets[i] - 2), 0xFFU);
    ASSERT_EQ(at(bytes, offsets[i] - 1), 0xD0 + (i - 1) % 8);
  }
  EXPECT_EQ(at(bytes, bytes.size() - 2) << 8 | at(bytes, bytes.size() - 1), 0xFFD9U);
}

TEST(JpegTranscoder, does_with_every_odd_file_what_the_table_says) {
  JpegDecoder decoder;
  JpegTranscoder transcoder;
  RgbImage pixels;
  std::set<std::string> seen;
  for (const auto& [file, outcome, coding, interval] : kTable) {
    SCOPED_TRACE(file);
    seen.insert(file);
    const auto source = bytes_of(kFolder / file);
    if (!outcome) {
      EXPECT_THROW(decoder.decode(source, pixels), Error);
      continue;
    }
    const int warnings = decoder.decode(source, pixels);
    const auto jpeg = transcoder.transcode(source, pixels, warnings);
    EXPECT_EQ(jpeg.outcome, *outcome);
    EXPECT_EQ(jpeg.source_coding, coding);
    EXPECT_EQ(jpeg.restart_interval, interval);
    if (*outcome == Transcoding::done) {
      expect_promises(jpeg, pixels);
    } else {
      EXPECT_TRUE(jpeg.bytes.empty() && jpeg.restart_offsets.empty());
    }
  }
  std::istringstream manifest(text_of(kFolder / "MANIFEST.tsv"));
  std::string line;
  std::getline(manifest, line);
  std::size_t count = 0;
  for (; std::getline(manifest, line); ++count)
    EXPECT_TRUE(seen.contains(line.substr(0, line.find('\t')))) << line;
  EXPECT_EQ(count, seen.size());
}

std::vector<fs::path> photos_of(const fs::path& folder) {
  std::vector<fs::path> photos;
  for (const auto& entry : fs::directory_iterator(folder)) photos.push_back(entry.path());
  std::sort(photos.begin(), photos.end());
  return photos;
}

TEST(JpegTranscoder, coco_photos_grow_by_less_than_a_percent_and_decode_to_the_same_pixels) {
  JpegDecoder decoder;
  JpegTranscoder transcoder;
  RgbImage pixels;
  std::size_t source_bytes = 0, bytes = 0, count = 0;
  for (const auto* folder : {"coco_free/train2017", "coco_free/val2017"}) {
    for (const auto& photo : photos_of(kData / folder)) {
      SCOPED_TRACE(photo);
      const auto source = bytes_of(photo);
      ASSERT_EQ(decoder.decode(source, pixels), 0);
      const auto jpeg = transcoder.transcode(source, pixels, 0);
      ASSERT_EQ(jpeg.outcome, Transcoding::done);
      expect_promises(jpeg, pixels);
      source_bytes += source.size();
      bytes += jpeg.bytes.size();
      ++count;
    }
  }
  EXPECT_EQ(count, 12U);
  EXPECT_LE(static_cast<double>(bytes), 1.01 * static_cast<double>(source_bytes));
}

// All quantisation steps at their largest: coefficients of a photo then leave 16 bits, and the crop decoder
// asks libjpeg. The transcoder compares the two all the same, for bytes on which they differ; no such bytes
// are known.
TEST(JpegTranscoder, photos_with_the_largest_steps_are_decoded_alike_by_the_crop_decoder) {
  JpegTranscoder transcoder;
  JpegDecoder decoder;
  JpegCropDecoder crop_decoder;
  int photos = 0;
  for (const auto& entry : fs::directory_iterator(kData / "coco_free" / "val2017")) {
    auto bytes = bytes_of(entry.path());
    for (std::size_t at = 2; at + 4 < bytes.size() && bytes[at + 1] != std::byte{0xDA};) {
      const auto length =
          std::to_integer<std::size_t>(bytes[at + 2]) << 8 | std::to_integer<std::size_t>(bytes[at + 3]);
      if (bytes[at + 1] == std::byte{0xDB}) {
        for (std::size_t i = at + 4; i < at + 2 + length; ++i)
          if ((i - at - 4) % 65 != 0) bytes[i] = std::byte{255};
      }
      at += 2 + length;
    }
    RgbImage pixels;
    const int warnings = decoder.decode(bytes, pixels);
    const auto made = transcoder.transcode(bytes, pixels, warnings);
    ++photos;
    ASSERT_EQ(made.outcome, Transcoding::done) << entry.path();
    const PixelRect whole{0, 0, pixels.width, pixels.height};
    const auto view = crop_decoder.decode(made.bytes, {made.restart_interval, made.restart_offsets},
                                          {pixels.width, pixels.height}, whole);
    for (int y = 0; y < pixels.height; ++y) {
      ASSERT_TRUE(std::equal(
          view.pixels + static_cast<std::size_t>(y) * view.row_bytes,
          view.pixels + static_cast<std::size_t>(y) * view.row_bytes + pixels.width * 3,
          pixels.pixels.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(pixels.width) * 3))
          << entry.path() << " row " << y;
    }
  }
  EXPECT_EQ(photos, 5);
}

TEST(JpegTranscoder, writes_the_same_bytes_whatever_it_did_before) {
  JpegDecoder decoder;
  JpegTranscoder used;
  RgbImage pixels;
  for (const auto* file :
       {"ok/adobe_cmyk_600x397.jpg", "warn/progressive_corrupt_546x340.jpg", "ok/hopper_gray.jpg",
        "ok/hopper_sof1_16bit_qtables.jpg", "ok/arithmetic_sof9.jpg", "ok/testorig.jpg"}) {
    const auto source = bytes_of(kFolder / file);
    const int warnings = decoder.decode(source, pixels);
    EXPECT_TRUE(used.transcode(source, pixels, warnings).bytes ==
                JpegTranscoder().transcode(source, pixels, warnings).bytes)
        << file;
  }
}

TEST(JpegTranscoder, keeps_a_progressive_file_without_its_last_scans_because_decoders_smooth_it) {
  auto source = bytes_of(kFolder / "ok/progressive3.jpg");
  std::size_t scans = 0, end = 2;
  for (; scans < 5; ++end) scans += at(source, end) == 0xFF && at(source, end + 1) == 0xDA;
  source.resize(end - 1);
  source.insert(source.end(), {std::byte{0xFF}, std::byte{0xD9}});
  RgbImage pixels;
  ASSERT_EQ(JpegDecoder().decode(source, pixels), 0);
  EXPECT_EQ(JpegTranscoder().transcode(source, pixels, 0).outcome, Transcoding::other_pixels);
}

TEST(JpegTranscoder, tells_when_it_was_given_other_pixels) {
  const auto source = bytes_of(kFolder / "ok/hopper.jpg");
  RgbImage pixels;
  JpegDecoder().decode(source, pixels);
  ++pixels.pixels[5000];
  EXPECT_EQ(JpegTranscoder().transcode(source, pixels, 0).outcome, Transcoding::other_pixels);
}

// Three components of 2 x 2 blocks each, in scans of their own: 12 blocks, and an MCU holds at most 10
// (ITU-T T.81, B.2.3).
std::vector<std::byte> jpeg_of_too_many_blocks() {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_width = info.image_height = 40;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_scan_info scans[3]{};
  for (int c = 0; c < 3; ++c) {
    info.comp_info[c].h_samp_factor = info.comp_info[c].v_samp_factor = 2;
    scans[c].comps_in_scan = 1;
    scans[c].component_index[0] = c;
    scans[c].Se = 63;
  }
  info.scan_info = scans;
  info.num_scans = 3;
  jpeg_start_compress(&info, TRUE);
  std::vector<JSAMPLE> row(120);
  while (info.next_scanline < info.image_height) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<JSAMPLE>(i * info.next_scanline);
    auto* rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const auto bytes = std::as_bytes(std::span(buffer, size));
  std::vector<std::byte> result(bytes.begin(), bytes.end());
  std::free(buffer);
  return result;
}

TEST(JpegTranscoder, keeps_a_file_whose_mcu_would_hold_too_many_blocks) {
  const auto source = jpeg_of_too_many_blocks();
  RgbImage pixels;
  ASSERT_EQ(JpegDecoder().decode(source, pixels), 0);
  EXPECT_EQ(JpegTranscoder().transcode(source, pixels, 0).outcome, Transcoding::unsupported);
}

TEST(RestartInterval, divides_the_row_and_is_neither_wide_nor_short) {
  const std::uint64_t large = 1'000'000;
  EXPECT_EQ(restart_interval_for({80, 60, 8}, large), 16U);  // 640 x 480, 4:4:4
  EXPECT_EQ(restart_interval_for({63, 47, 8}, large), 9U);   // 500 x 375
  EXPECT_EQ(restart_interval_for({47, 63, 8}, large), 47U);  // 375 x 500: a prime number of columns
  EXPECT_EQ(restart_interval_for({58, 50, 8}, large), 29U);  // 2 x 29: 2 would be 16 pixels
  EXPECT_EQ(restart_interval_for({40, 30, 16}, large), 8U);  // 640 x 480, 4:2:0
  EXPECT_EQ(restart_interval_for({1, 1, 16}, 300), 1U);
  EXPECT_EQ(restart_interval_for({2, 5, 8}, large), 2U);      // no wider than 16 pixels in all
  EXPECT_EQ(restart_interval_for({80, 60, 8}, 19'200), 16U);  // 64 bytes a segment
  EXPECT_EQ(restart_interval_for({80, 60, 8}, 19'199), 20U);
  EXPECT_EQ(restart_interval_for({100, 35, 8}, 1'036), 100U);  // nothing in it
}

}  // namespace
}  // namespace ssd
