// Every file of tests/data/jpeg_nasty against its MANIFEST.tsv, which libjpeg-turbo 2.1.5 made.
#include "image/jpeg.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <type_traits>
// jpeglib.h wants FILE declared before it.
#include <jpeglib.h>

#include "core/error.hpp"
#include "image/exif.hpp"
#include "image/orientation.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kFolder = fs::path(SSD_TEST_DATA) / "jpeg_nasty";

using Row = std::map<std::string, std::string>;

std::vector<Row> manifest_rows(const std::string& folder) {
  std::istringstream stream(text_of(kFolder / "MANIFEST.tsv"));
  const auto cells_of = [](const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream cell_stream(line);
    for (std::string cell; std::getline(cell_stream, cell, '\t');) cells.push_back(cell);
    return cells;
  };
  std::string line;
  std::getline(stream, line);
  const auto names = cells_of(line);
  std::vector<Row> rows;
  while (std::getline(stream, line)) {
    const auto cells = cells_of(line);
    Row row;
    for (std::size_t i = 0; i < cells.size(); ++i) row[names[i]] = cells[i];
    if (row["file"].starts_with(folder + "/")) rows.push_back(row);
  }
  return rows;
}

// FNV-1a of 64 bits from the starting value that the manifest was made with (not the standard one).
std::string fnv1a64(std::span<const std::uint8_t> values) {
  std::uint64_t hash = 1469598103934665603;
  for (const auto value : values) hash = (hash ^ value) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

// The stored CMYK values of a good file: libjpeg and nothing else.
std::vector<std::uint8_t> cmyk_of(std::span<const std::byte> bytes) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_CMYK;
  jpeg_start_decompress(&info);
  const std::size_t row_bytes = std::size_t{info.output_width} * 4;
  std::vector<std::uint8_t> values(row_bytes * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = values.data() + row_bytes * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return values;
}

RgbImage png_of(const fs::path& path) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&png, path.c_str()) == 0) throw std::runtime_error(png.message);
  png.format = PNG_FORMAT_RGB;
  RgbImage image{static_cast<int>(png.width), static_cast<int>(png.height), {}};
  image.pixels.resize(PNG_IMAGE_SIZE(png));
  if (png_image_finish_read(&png, nullptr, image.pixels.data(), 0, nullptr) == 0)
    throw std::runtime_error(png.message);
  return image;
}

int largest_difference(const RgbImage& a, const RgbImage& b) {
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.height, b.height);
  int largest = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i)
    largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  return largest;
}

// The pixels' hash. Two damaged files have coefficients beyond those of any picture, for which the forms of
// libjpeg-turbo differ: the manifest has those of SSE2 and AVX2, these are NEON's, by libjpeg-turbo alone.
std::string expected_pixels(const Row& row) {
#ifdef __aarch64__
  if (row.at("file") == "warn/dc-predictor-overflow.jpg") return "fcf35880cc5dfa0f";
  if (row.at("file") == "warn/progressive_corrupt_546x340.jpg") return "22295c89ce4ff710";
#endif
  return row.at("fnv1a64_of_pixels");
}

void expect_as_in_manifest(JpegDecoder& decoder, Row& row) {
  SCOPED_TRACE(row["file"]);
  const auto bytes = bytes_of(kFolder / row["file"]);
  RgbImage image;
  EXPECT_EQ(decoder.decode(bytes, image), std::stoi(row["warnings"]));
  EXPECT_EQ(fmt::format("{}x{}", image.width, image.height), row["dims"]);
  const auto info = read_jpeg_info(bytes);
  EXPECT_EQ(info.components, std::stoi(row["ncomp"]));
  EXPECT_EQ(info.width, image.width);
  EXPECT_EQ(info.height, image.height);
  if (info.components != 4) {
    EXPECT_EQ(fnv1a64(image.pixels), expected_pixels(row));
    return;
  }
  const auto cmyk = cmyk_of(bytes);
  ASSERT_EQ(fnv1a64(cmyk), row["fnv1a64_of_pixels"]);
  ASSERT_EQ(cmyk.size() / 4, image.pixels.size() / 3);
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    ASSERT_EQ(image.pixels[i], cmyk[i / 3 * 4 + i % 3] * cmyk[i / 3 * 4 + 3] / 255) << "value " << i;
}

TEST(JpegDecoder, gives_the_pixels_and_warnings_of_the_manifest) {
  JpegDecoder decoder;
  std::size_t file_count = 0;
  for (const auto* folder : {"ok", "warn", "exif"}) {
    for (auto& row : manifest_rows(folder)) {
      expect_as_in_manifest(decoder, row);
      ++file_count;
    }
  }
  EXPECT_EQ(file_count, 81U);
}

TEST(JpegDecoder, agrees_with_the_reference_pictures_of_the_sources) {
  JpegDecoder decoder;
  std::size_t compared = 0;
  for (const auto* folder : {"ok", "warn"}) {
    for (auto& row : manifest_rows(folder)) {
      if (!row["vs_ref_png"].starts_with("max|d|=")) continue;
      SCOPED_TRACE(row["file"]);
      RgbImage image;
      decoder.decode(bytes_of(kFolder / row["file"]), image);
      const auto png = png_of(kFolder / "ok_refpng" / (fs::path(row["file"]).stem().string() + ".png"));
      EXPECT_LE(largest_difference(image, png), std::stoi(row["vs_ref_png"].substr(7)));
      ++compared;
    }
  }
  EXPECT_EQ(compared, 31U);
}

TEST(JpegDecoder, refuses_what_the_manifest_refuses_and_still_decodes_afterwards) {
  JpegDecoder decoder;
  const auto good = bytes_of(kFolder / "ok/hopper.jpg");
  RgbImage expected;
  decoder.decode(good, expected);
  std::size_t refused = 0;
  for (const auto* folder : {"reject", "notjpeg"}) {
    for (auto& row : manifest_rows(folder)) {
      SCOPED_TRACE(row["file"]);
      const auto bytes = bytes_of(kFolder / row["file"]);
      RgbImage image;
      EXPECT_THROW(decoder.decode(bytes, image), Error);
      RgbImage again;
      EXPECT_EQ(decoder.decode(good, again), 0);
      EXPECT_EQ(again.pixels, expected.pixels);
      ++refused;
    }
  }
  EXPECT_EQ(refused, 16U);
}

TEST(JpegDecoder, T2_09_gives_gray_pictures_three_equal_channels) {
  JpegDecoder decoder;
  RgbImage image;
  decoder.decode(bytes_of(kFolder / "ok/hopper_gray.jpg"), image);
  ASSERT_EQ(image.pixels.size(), 128U * 128 * 3);
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    ASSERT_EQ(image.pixels[i], image.pixels[i + 1]) << i;
    ASSERT_EQ(image.pixels[i], image.pixels[i + 2]) << i;
  }
}

TEST(JpegDecoder, says_why_a_file_is_refused) {
  const auto reason = [](const char* file) {
    return message_of<Error>([&] { read_jpeg_info(bytes_of(kFolder / file)); });
  };
  EXPECT_EQ(reason("reject/empty.jpg"), "an empty file");
  EXPECT_EQ(reason("notjpeg/png_named.jpg"), "not a JPEG (it begins with 89 50 4e 47, not with ff d8)");
  EXPECT_EQ(reason("reject/precision12_sof1.jpg"),
            "not a JPEG that can be read: Unsupported JPEG data precision 12");
  EXPECT_EQ(reason("reject/lossless_rgb_100x100.jpg"),
            "not a JPEG that can be read: Unsupported JPEG process: SOF type 0xc3");
  EXPECT_THAT(reason("reject/max_size.jpg"), HasSubstr("65500 pixels"));
  EXPECT_EQ(reason("reject/bomb_3617x64508_arithprog_4comp.jpg"),
            "a JPEG of 3617 x 64508 pixels; at most 134217728 pixels are read");
}

TEST(JpegDecoder, tells_cut_off_files_from_whole_ones) {
  JpegDecoder decoder;
  RgbImage image;
  for (auto& row : manifest_rows("ok")) {
    decoder.decode(bytes_of(kFolder / row["file"]), image);
    EXPECT_FALSE(decoder.is_cut_off()) << row["file"];
  }
  for (const auto* file : {"warn/trunc3000_testorig.jpg", "warn/truncated_progressive_100x100.jpg",
                           "warn/ultrahdr_truncated_1512x2688.jpg"}) {
    EXPECT_GT(decoder.decode(bytes_of(kFolder / file), image), 0) << file;
    EXPECT_TRUE(decoder.is_cut_off()) << file;
  }
  // Damaged, but not cut off.
  EXPECT_GT(decoder.decode(bytes_of(kFolder / "warn/extraneous-data.jpg"), image), 0);
  EXPECT_FALSE(decoder.is_cut_off());
  // Nothing but the end marker is missing.
  const auto whole = bytes_of(kFolder / "ok/testorig.jpg");
  EXPECT_EQ(decoder.decode(std::span(whole).first(whole.size() - 2), image), 1);
  EXPECT_FALSE(decoder.is_cut_off());
}

TEST(JpegDecoder, survives_every_shortened_and_every_damaged_header) {
  JpegDecoder decoder;
  RgbImage image;
  auto bytes = bytes_of(kFolder / "exif/orientation_6.jpg");
  std::size_t decoded = 0;
  const auto try_decode = [&](std::span<const std::byte> data) {
    try {
      decoder.decode(data, image);
      ++decoded;
    } catch (const Error&) {
    }
  };
  for (std::size_t size = 0; size < bytes.size(); size += 7) try_decode(std::span(bytes).first(size));
  for (std::size_t i = 0; i < 700; ++i) {
    const auto kept = bytes[i];
    bytes[i] = ~kept;
    try_decode(bytes);
    bytes[i] = kept;
  }
  EXPECT_GT(decoded, 0U);
  EXPECT_EQ(decoder.decode(bytes, image), 0);
}

TEST(JpegDecoder, arithmetic_and_huffman_twins_give_the_same_pixels) {
  JpegDecoder decoder;
  RgbImage arithmetic;
  RgbImage huffman;
  decoder.decode(bytes_of(kFolder / "ok/arithmetic_sof9.jpg"), arithmetic);
  decoder.decode(bytes_of(kFolder / "ok/testimgint.jpg"), huffman);
  EXPECT_EQ(arithmetic.pixels, huffman.pixels);
}

// The file without its Huffman tables, for which libjpeg has standard ones.
std::vector<std::byte> without_huffman_tables(std::vector<std::byte> bytes) {
  const auto at = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  for (std::size_t place = 2; at(place + 1) != 0xDA;) {
    const std::size_t size = 2 + (at(place + 2) << 8 | at(place + 3));
    if (at(place + 1) != 0xC4) {
      place += size;
      continue;
    }
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(place);
    bytes.erase(first, first + static_cast<std::ptrdiff_t>(size));
  }
  return bytes;
}

TEST(JpegDecoder, decodes_a_picture_without_tables_alike_whatever_came_before) {
  const auto bytes = without_huffman_tables(bytes_of(kFolder / "ok/testorig.jpg"));
  RgbImage expected, image;
  JpegDecoder().decode(bytes, expected);
  JpegDecoder decoder;
  decoder.decode(bytes_of(kFolder / "ok/moz-progressive.jpg"), image);  // has tables of its own
  decoder.decode(bytes, image);
  EXPECT_EQ(image.pixels, expected.pixels);
}

TEST(JpegDecoder, is_movable_and_not_copyable) {
  static_assert(std::is_nothrow_move_constructible_v<JpegDecoder> &&
                std::is_nothrow_move_assignable_v<JpegDecoder>);
  static_assert(!std::is_copy_constructible_v<JpegDecoder>);
}

TEST(ExifOrientation, is_that_of_the_manifest_and_1_where_broken) {
  std::size_t broken = 0;
  for (auto& row : manifest_rows("exif")) {
    const auto& cell = row["exif_orientation"];
    const bool is_plain = cell.size() == 1 && cell >= "1" && cell <= "8";
    EXPECT_EQ(read_jpeg_info(bytes_of(kFolder / row["file"])).orientation, is_plain ? std::stoi(cell) : 1)
        << row["file"];
    broken += !is_plain;
  }
  EXPECT_EQ(broken, 3U);
}

// An EXIF block with one entry in IFD 0.
std::string exif_block(bool is_big_endian, unsigned tag, unsigned type, unsigned count, unsigned value) {
  std::string text = is_big_endian ? std::string("MM\0*", 4) : std::string("II*\0", 4);
  const auto put = [&](unsigned number, int byte_count) {
    for (int i = 0; i < byte_count; ++i)
      text.push_back(static_cast<char>(number >> 8 * (is_big_endian ? byte_count - 1 - i : i)));
  };
  put(8, 4);
  put(1, 2);
  put(tag, 2);
  put(type, 2);
  put(count, 4);
  put(value, 2);
  put(0, 2);
  put(0, 4);
  return std::string("Exif\0\0", 6) + text;
}

int orientation_of(const std::string& block) {
  return exif_orientation(std::as_bytes(std::span(block)));
}

TEST(ExifOrientation, reads_both_byte_orders_and_refuses_odd_entries) {
  for (const bool is_big_endian : {false, true}) {
    for (unsigned value = 1; value <= 8; ++value)
      EXPECT_EQ(orientation_of(exif_block(is_big_endian, 0x0112, 3, 1, value)), static_cast<int>(value));
    EXPECT_EQ(orientation_of(exif_block(is_big_endian, 0x0112, 3, 1, 0)), 1);
    EXPECT_EQ(orientation_of(exif_block(is_big_endian, 0x0112, 3, 1, 9)), 1);
    EXPECT_EQ(orientation_of(exif_block(is_big_endian, 0x0112, 2, 1, 6)), 1);
    EXPECT_EQ(orientation_of(exif_block(is_big_endian, 0x0112, 3, 2, 6)), 1);
    EXPECT_EQ(orientation_of(exif_block(is_big_endian, 0x0113, 3, 1, 6)), 1);
    const auto block = exif_block(is_big_endian, 0x0112, 3, 1, 6);
    for (std::size_t size = 0; size < 6 + 8 + 2 + 10; ++size)
      EXPECT_EQ(orientation_of(block.substr(0, size)), 1);
  }
}

TEST(ApplyOrientation, turns_all_eight_into_the_upright_picture) {
  JpegDecoder decoder;
  RgbImage upright;
  decoder.decode(bytes_of(kFolder / "ok/hopper.jpg"), upright);
  for (int orientation = 2; orientation <= 8; ++orientation) {
    const auto bytes = bytes_of(kFolder / fmt::format("exif/orientation_{}.jpg", orientation));
    RgbImage stored;
    decoder.decode(bytes, stored);
    const auto turned = apply_orientation(stored, orientation);
    double sum = 0;
    for (std::size_t i = 0; i < turned.pixels.size(); ++i)
      sum += std::abs(turned.pixels[i] - upright.pixels[i]);
    // The files were turned and compressed again: a few grey levels of loss. A wrong turn differs by
    // about 60.
    EXPECT_LT(sum / static_cast<double>(turned.pixels.size()), 8) << orientation;
  }
}

TEST(ApplyOrientation, moves_single_pixels_where_exif_says) {
  const RgbImage stored{3, 2, {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5}};
  const auto grays = [&](int orientation) {
    const auto upright = apply_orientation(stored, orientation);
    EXPECT_EQ(upright.width, orientation < 5 ? 3 : 2);
    EXPECT_EQ(upright.height, orientation < 5 ? 2 : 3);
    std::string text;
    for (std::size_t i = 0; i < upright.pixels.size(); i += 3)
      text += static_cast<char>('0' + upright.pixels[i]);
    return text;
  };
  EXPECT_EQ(grays(1), "012345");
  EXPECT_EQ(grays(2), "210543");
  EXPECT_EQ(grays(3), "543210");
  EXPECT_EQ(grays(4), "345012");
  EXPECT_EQ(grays(5), "031425");
  EXPECT_EQ(grays(6), "304152");
  EXPECT_EQ(grays(7), "524130");
  EXPECT_EQ(grays(8), "251403");
}

}  // namespace
}  // namespace ssd
