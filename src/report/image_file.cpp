#include "report/image_file.hpp"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
// jpeglib.h wants FILE and size_t declared before it.
#include <jpeglib.h>
#include <png.h>

#include <array>
#include <string_view>

#include "core/atomic_file.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

constexpr int kJpegQuality = 92;

// libjpeg's errors leave by longjmp, past no destructor: neither this nor compress() holds anything that has
// one.
struct JpegCompressor {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
  unsigned char* bytes;  // of malloc
  unsigned long count;
};

[[noreturn]] void leave_with_error(j_common_ptr info) {
  auto& compressor = *static_cast<JpegCompressor*>(info->client_data);
  info->err->format_message(info, compressor.message);
  std::longjmp(compressor.jump, 1);
}

bool compress(JpegCompressor& compressor, const RgbImage& picture) {
  auto& info = compressor.info;
  info.err = jpeg_std_error(&compressor.errors);
  info.client_data = &compressor;
  compressor.errors.error_exit = leave_with_error;
  if (setjmp(compressor.jump) != 0) return false;
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &compressor.bytes, &compressor.count);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kJpegQuality, TRUE);
  // 4:4:4: thin lines keep their colours.
  for (int i = 0; i < 3; ++i) info.comp_info[i].h_samp_factor = info.comp_info[i].v_samp_factor = 1;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row =
        const_cast<JSAMPROW>(picture.pixels.data() + std::size_t{info.next_scanline} * info.image_width * 3);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

std::vector<std::byte> encode_jpeg(const RgbImage& picture) {
  JpegCompressor compressor{};
  const bool is_done = compress(compressor, picture);
  jpeg_destroy_compress(&compressor.info);
  std::vector<std::byte> result;
  if (is_done) {
    const auto* first = reinterpret_cast<const std::byte*>(compressor.bytes);
    result.assign(first, first + compressor.count);
  }
  std::free(compressor.bytes);
  if (!is_done) throw LibraryError("libjpeg", "compression", compressor.message);
  return result;
}

std::vector<std::byte> encode_png(const RgbImage& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t count = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<std::byte> result(count);
  if (png_image_write_to_memory(&image, result.data(), &count, 0, picture.pixels.data(), 0, nullptr) == 0)
    throw LibraryError("libpng", "png_image_write_to_memory", image.message);
  result.resize(count);
  return result;
}

}  // namespace

std::vector<std::byte> encode_image(const RgbImage& picture, ImageFormat format) {
  return format == ImageFormat::png ? encode_png(picture) : encode_jpeg(picture);
}

void write_image(const std::filesystem::path& path, const RgbImage& picture, ImageFormat format) {
  const auto bytes = encode_image(picture, format);
  write_file_atomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace ssd
