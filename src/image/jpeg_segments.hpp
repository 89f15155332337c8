// A decoder of its own for the files that ssd_preprocess makes of nearly all photos of COCO: baseline JPEGs
// of Y, Cb and Cr without subsampling, with restart segments. About four fifths of libjpeg's time for the
// same pixels; all other files are libjpeg's (jpeg_crop.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "image/jpeg_headers.hpp"
#include "image/jpeg_huffman.hpp"
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
  bool make_tables();

  JpegHeaders headers_;
  std::array<HuffmanDecoder, 4> dc_, ac_;
  std::vector<std::uint8_t> segment_;  // its bytes without stuffing
  std::vector<std::int16_t> blocks_;   // of two segments, one above the other in the picture, in pairs
  std::vector<std::uint8_t> last_;     // of each pair the larger place of a last coefficient
};

}  // namespace ssd
