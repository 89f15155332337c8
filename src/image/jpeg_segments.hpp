// A decoder of its own for the files that ssd_preprocess makes of nearly all photos: baseline JPEGs with
// restart segments, gray, or Y, Cb and Cr with chroma of full or half width and height (4:4:4, 4:2:2, 4:4:0,
// 4:2:0). About two thirds of libjpeg-turbo's time for the same pixels; all other files are libjpeg's
// (jpeg_crop.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "image/jpeg_blocks.hpp"
#include "image/jpeg_headers.hpp"
#include "image/jpeg_huffman.hpp"
#include "image/jpeg_upsample.hpp"
#include "image/rgb_image.hpp"

namespace ssd {

// Not thread safe: keeps its tables.
class SegmentDecoder {
 public:
  // The pixels of `rect`, a rectangle of a raster of this size, as libjpeg decodes them. Nothing (no pixels
  // in the view) for other files, another size, an index of segments that does not fit, and damaged data in
  // what has to be read: libjpeg knows what to make of them. Coefficients that do not fit 16 bits,
  // which no encoder makes of a picture, may give other pixels than libjpeg's: JpegTranscoder gives such a
  // file no index. Reads nothing outside `bytes`, whatever they hold. The view is of `buffer`.
  RgbView decode(std::span<const std::byte> bytes, std::span<const std::uint32_t> segment_offsets,
                 const PictureSize& size, const PixelRect& rect, std::vector<std::uint8_t>& buffer);

 private:
  // A file and the MCUs [first, end) of it that are decoded.
  struct Part {
    std::span<const std::byte> bytes;
    std::span<const std::uint32_t> segment_offsets;
    int first_column, end_column, first_row, end_row;
  };
  // Levels of the MCUs of a part, row by row.
  struct Plane {
    std::vector<std::uint8_t> levels;
    std::size_t row_bytes = 0;
    const std::uint8_t* row(std::size_t at) const { return levels.data() + at * row_bytes; }
  };

  // False for sampling factors, or tables, that are libjpeg's.
  bool plan_mcus();
  bool make_tables();
  template <class Write>
  bool decode_runs(const Part& part, const Write& write);
  RgbView decode_pixels(const Part& part, const PixelRect& rect, std::vector<std::uint8_t>& buffer);
  RgbView decode_planes(const Part& part, const PixelRect& rect, std::vector<std::uint8_t>& buffer);
  void color_rows(const Part& part, const PixelRect& rect, std::uint8_t* out);

  JpegHeaders headers_;
  ChromaScale scale_;
  McuLayout layout_;
  SegmentTables tables_{};
  SegmentSteps steps_{};
  std::array<HuffmanDecoder, 4> dc_, ac_;
  std::vector<std::uint8_t> segment_;  // its bytes without stuffing
  std::vector<std::int16_t> blocks_;   // of two segments, one above the other in the picture, in pairs
  std::vector<std::uint8_t> last_;     // of each pair the larger place of a last coefficient
  std::array<Plane, kSegmentComponents> planes_;
  std::array<ChromaUpsampler, 2> upsamplers_;
  std::array<std::vector<std::uint8_t>, 2> chroma_;  // a row of pixels' Cb and Cr
};

}  // namespace ssd
