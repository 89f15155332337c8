#include "image/encode_jpeg.hpp"

#include <cstdlib>

#include "core/error.hpp"
#include "image/libjpeg.hpp"

namespace ssd {
namespace {

// No function between the setjmp and libjpeg holds anything that has a destructor.
struct Compressor {
  jpeg_compress_struct info;
  LibjpegErrors errors;
  unsigned char* bytes;  // of malloc
  unsigned long count;
};

bool compress(Compressor& compressor, const RgbImage& picture, JpegColors colors, int quality,
              std::uint8_t* gray_row) {
  auto& info = compressor.info;
  info.err = install(compressor.errors);
  if (setjmp(compressor.errors.jump) != 0) return false;
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &compressor.bytes, &compressor.count);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = colors == JpegColors::gray ? 1 : 3;
  info.in_color_space = colors == JpegColors::gray ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.dct_method = JDCT_ISLOW;
  for (int i = 0; i < info.num_components; ++i)
    info.comp_info[i].h_samp_factor = info.comp_info[i].v_samp_factor = 1;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    const std::uint8_t* pixels =
        picture.pixels.data() + std::size_t{info.next_scanline} * info.image_width * 3;
    JSAMPROW row = const_cast<JSAMPROW>(pixels);
    if (colors == JpegColors::gray) {
      for (std::size_t x = 0; x < info.image_width; ++x) gray_row[x] = pixels[3 * x];
      row = gray_row;
    }
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

}  // namespace

std::vector<std::byte> encode_jpeg(const RgbImage& picture, JpegColors colors, int quality) {
  Compressor compressor{};
  std::vector<std::uint8_t> gray_row(static_cast<std::size_t>(picture.width));
  const bool is_done = compress(compressor, picture, colors, quality, gray_row.data());
  jpeg_destroy_compress(&compressor.info);
  std::vector<std::byte> result;
  if (is_done) {
    const auto* first = reinterpret_cast<const std::byte*>(compressor.bytes);
    result.assign(first, first + compressor.count);
  }
  std::free(compressor.bytes);
  if (!is_done) throw LibraryError("libjpeg", "compression", compressor.errors.message.data());
  return result;
}

}  // namespace ssd
