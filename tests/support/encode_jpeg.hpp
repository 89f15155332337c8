// Pictures made in tests, as JPEG.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>
// jpeglib.h wants FILE declared before it.
#include <jpeglib.h>

#include "image/rgb_image.hpp"

namespace ssd::test {

// Baseline JPEG, best quality. Luma has `horizontal` x `vertical` levels for each of chroma: 1 x 1 is 4:4:4.
inline std::vector<std::byte> encode_jpeg(const RgbImage& image, int horizontal = 1, int vertical = 1) {
  jpeg_compress_struct compress{};
  jpeg_error_mgr errors{};
  compress.err = jpeg_std_error(&errors);
  jpeg_create_compress(&compress);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&compress, &bytes, &count);
  compress.image_width = static_cast<JDIMENSION>(image.width);
  compress.image_height = static_cast<JDIMENSION>(image.height);
  compress.input_components = 3;
  compress.in_color_space = JCS_RGB;
  jpeg_set_defaults(&compress);
  jpeg_set_quality(&compress, 100, TRUE);
  for (int i = 0; i < 3; ++i) {
    compress.comp_info[i].h_samp_factor = i == 0 ? horizontal : 1;
    compress.comp_info[i].v_samp_factor = i == 0 ? vertical : 1;
  }
  jpeg_start_compress(&compress, TRUE);
  while (compress.next_scanline < compress.image_height) {
    auto* row =
        const_cast<JSAMPROW>(&image.pixels[std::size_t{compress.next_scanline} * compress.image_width * 3]);
    jpeg_write_scanlines(&compress, &row, 1);
  }
  jpeg_finish_compress(&compress);
  jpeg_destroy_compress(&compress);
  const auto* first = reinterpret_cast<const std::byte*>(bytes);
  std::vector<std::byte> result(first, first + count);
  std::free(bytes);
  return result;
}

}  // namespace ssd::test
