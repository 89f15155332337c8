// The JPEG path under libFuzzer: built by Clang with -DSSD_FUZZ=ON, run as jpeg_fuzzer FOLDER
// -max_total_time=600, where FOLDER holds JPEG files to begin with. Decoding gives a picture or an Error;
// what is encoded anew decodes to the same pixels and has the index that it promises.
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "core/error.hpp"
#include "image/jpeg.hpp"
#include "image/jpeg_transcode.hpp"

namespace {

constexpr std::int64_t kMostPixels = 1 << 20;  // larger ones cost time and show nothing else

void expect(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static ssd::JpegDecoder decoder;
  static ssd::JpegTranscoder transcoder;
  static ssd::RgbImage pixels, pixels_anew;
  const auto bytes = std::as_bytes(std::span(data, size));
  int warnings = 0;
  try {
    const auto info = decoder.read_info(bytes);
    expect(info.orientation >= 1 && info.orientation <= 8, "an orientation that is none");
    if (std::int64_t{info.width} * info.height > kMostPixels) return 0;
    warnings = decoder.decode(bytes, pixels);
  } catch (const ssd::Error&) {
    return 0;
  }
  const auto anew = transcoder.transcode(bytes, pixels, warnings);
  if (anew.outcome != ssd::Transcoding::done) {
    expect(anew.bytes.empty() && anew.restart_offsets.empty(), "bytes without an outcome");
    return 0;
  }
  expect(warnings == 0, "a damaged picture was encoded anew");
  expect(decoder.decode(anew.bytes, pixels_anew) == 0 && pixels_anew.pixels == pixels.pixels, "other pixels");
  expect(anew.restart_interval > 0 && !anew.restart_offsets.empty(), "no index");
  std::uint32_t last = 0;
  for (const auto offset : anew.restart_offsets) {
    expect(offset > last && offset < anew.bytes.size(), "an index that does not fit");
    last = offset;
  }
  return 0;
}
