// A JPEG encoded anew without loss, so that parts of it can be decoded without the rest: the coefficients of
// the source in one sequential Huffman scan, with tables made for it and restart markers every few MCUs.
//
// What is promised of a new encoding: JpegDecoder and JpegCropDecoder give the same pixels as for the source,
// without a warning.
// All components are in one scan. Its segments hold restart_interval MCUs each, and the interval divides the
// number of MCUs in a row, so that a row of MCUs is a whole number of segments. The frame is SOF0, or SOF1
// where the source's quantisation tables have 16 bits. Sampling factors and quantisation tables are the
// source's; of its other markers only what decides the colours is written (JFIF, Adobe): EXIF with its
// orientation, ICC profiles, thumbnails and comments are gone. An MCU is mcu_width pixels wide: 8 x the
// largest horizontal sampling factor, in a gray picture 8 whatever its factor says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "image/jpeg.hpp"

namespace ssd {

enum class Transcoding {
  done,
  damaged,      // the source decodes with warnings: what libjpeg makes of it depends on its bytes
  unsupported,  // not to be had as one sequential 8-bit scan, such as more than 10 blocks in an MCU
  other_pixels  // the new encoding decodes to other pixels, such as a progressive file whose scans are not
                // complete, which decoders smooth, or coefficients that no encoder makes of a picture
};

enum class JpegCoding { sequential, progressive, arithmetic };

struct TranscodedJpeg {
  Transcoding outcome = Transcoding::done;
  JpegCoding source_coding = JpegCoding::sequential;
  // Where done; else empty, and the source's own bytes are to be kept.
  std::vector<std::byte> bytes;
  std::uint32_t restart_interval = 0;          // MCUs of a segment
  std::vector<std::uint32_t> restart_offsets;  // first byte of each segment's entropy-coded data in `bytes`
};

// The MCUs of a picture.
struct McuGrid {
  std::uint32_t columns = 0;
  std::uint32_t rows = 0;
  std::uint32_t mcu_width = 0;  // pixels
};

// Rises when some picture is encoded anew to other bytes than before: sets of shards made before are others.
inline constexpr std::uint32_t kTranscoderRevision = 2;

// MCUs of a segment: a divisor of the columns, at most 128 pixels wide where that leaves no segment of less
// than 24 pixels or, on average, 64 bytes; else the next larger divisor.
std::uint32_t restart_interval_for(const McuGrid& grid, std::uint64_t source_bytes);

// Not thread safe; keeps its buffers from call to call. The outcome depends on the source alone.
class JpegTranscoder {
 public:
  JpegTranscoder();
  ~JpegTranscoder();
  JpegTranscoder(JpegTranscoder&&) noexcept;
  JpegTranscoder& operator=(JpegTranscoder&&) noexcept;

  // source_pixels, source_warnings: what JpegDecoder::decode made of the source; the new encoding is compared
  // with them. Throws nothing but what new throws.
  TranscodedJpeg transcode(std::span<const std::byte> source, const RgbImage& source_pixels,
                           int source_warnings);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ssd
