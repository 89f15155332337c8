// Pictures made in tests, as PNG, WebP and BMP.
#pragma once

#include <png.h>
#include <webp/encode.h>
#include <webp/mux.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ssd::test {

struct PngToMake {
  int width = 0;
  int height = 0;
  int depth = 8;  // bits of a sample
  int color_type = PNG_COLOR_TYPE_RGB;
  std::vector<std::uint8_t> rows = {};  // packed as PNG has them, 16-bit samples big-endian
  std::vector<png_color> palette = {};
  std::vector<std::uint8_t> palette_alpha = {};
  bool is_interlaced = false;
  std::string exif = {};  // a TIFF structure
};

inline std::vector<std::byte> make_png(const PngToMake& made) {
  std::vector<std::byte> bytes;
  auto* png = png_create_write_struct(
      PNG_LIBPNG_VER_STRING, nullptr,
      [](png_structp, png_const_charp message) { throw std::runtime_error(message); }, nullptr);
  auto* info = png_create_info_struct(png);
  png_set_write_fn(
      png, &bytes,
      [](png_structp writer, png_bytep data, png_size_t count) {
        auto& out = *static_cast<std::vector<std::byte>*>(png_get_io_ptr(writer));
        const auto* from = reinterpret_cast<const std::byte*>(data);
        out.insert(out.end(), from, from + count);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(made.width), static_cast<png_uint_32>(made.height),
               made.depth, made.color_type, made.is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!made.palette.empty())
    png_set_PLTE(png, info, made.palette.data(), static_cast<int>(made.palette.size()));
  if (!made.palette_alpha.empty())
    png_set_tRNS(png, info, made.palette_alpha.data(), static_cast<int>(made.palette_alpha.size()), nullptr);
  std::string exif = made.exif;
  if (!exif.empty())
    png_set_eXIf_1(png, info, static_cast<png_uint_32>(exif.size()),
                   reinterpret_cast<png_bytep>(exif.data()));
  png_write_info(png, info);
  std::vector<png_bytep> rows(static_cast<std::size_t>(made.height));
  const std::size_t row_bytes = png_get_rowbytes(png, info);
  if (made.rows.size() != rows.size() * row_bytes) throw std::runtime_error("rows of another size");
  for (std::size_t y = 0; y < rows.size(); ++y)
    rows[y] = const_cast<png_bytep>(made.rows.data() + y * row_bytes);
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

// Without loss. levels: R G B A.
inline std::vector<std::byte> make_webp(int width, int height, const std::vector<std::uint8_t>& levels,
                                        const std::string& exif = "") {
  std::uint8_t* data = nullptr;
  const auto count = WebPEncodeLosslessRGBA(levels.data(), width, height, 4 * width, &data);
  if (count == 0) throw std::runtime_error("no WebP");
  WebPMux* mux = WebPMuxNew();
  const WebPData picture{data, count};
  WebPMuxSetImage(mux, &picture, 1);
  const WebPData chunk{reinterpret_cast<const std::uint8_t*>(exif.data()), exif.size()};
  if (!exif.empty()) WebPMuxSetChunk(mux, "EXIF", &chunk, 1);
  WebPData whole;
  WebPMuxAssemble(mux, &whole);
  const auto bytes = std::as_bytes(std::span(whole.bytes, whole.size));
  std::vector<std::byte> result(bytes.begin(), bytes.end());
  WebPDataClear(&whole);
  WebPMuxDelete(mux);
  WebPFree(data);
  return result;
}

// BITMAPINFOHEADER; rows as BMP has them, from the bottom, each a multiple of four bytes. palette: B G R 0.
inline std::vector<std::byte> make_bmp(int width, int height, int bits, const std::vector<std::uint8_t>& rows,
                                       const std::vector<std::uint8_t>& palette = {},
                                       std::uint32_t compression = 0) {
  std::vector<std::byte> bytes;
  const auto put = [&bytes](std::uint32_t value, int count) {
    for (int i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(value >> 8 * i));
  };
  const auto pixels_place = static_cast<std::uint32_t>(54 + palette.size());
  put('B' | 'M' << 8, 2);
  put(pixels_place + static_cast<std::uint32_t>(rows.size()), 4);
  put(0, 4);
  put(pixels_place, 4);
  put(40, 4);
  put(static_cast<std::uint32_t>(width), 4);
  put(static_cast<std::uint32_t>(height), 4);
  put(1, 2);
  put(static_cast<std::uint32_t>(bits), 2);
  put(compression, 4);
  put(0, 12);
  put(static_cast<std::uint32_t>(palette.size() / 4), 4);
  put(0, 4);
  for (const auto value : palette) put(value, 1);
  for (const auto value : rows) put(value, 1);
  return bytes;
}

// A TIFF structure with the orientation tag alone.
inline std::string exif_of(int orientation) {
  using std::string_literals::operator""s;
  return "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"s + static_cast<char>(orientation) +
         "\0\0\0\0\0\0\0"s;
}

}  // namespace ssd::test
