#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>
#include <vector>

#include "core/error.hpp"
#include "image/exif.hpp"
#include "image/picture_readers.hpp"

namespace ssd {
namespace {

int orientation_of(const WebPData& data) {
  const std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)> demuxer(WebPDemux(&data), &WebPDemuxDelete);
  WebPChunkIterator chunk;
  if (demuxer == nullptr || WebPDemuxGetChunk(demuxer.get(), "EXIF", 1, &chunk) == 0) return 1;
  const auto exif = std::as_bytes(std::span(chunk.chunk.bytes, chunk.chunk.size));
  // Some writers put the JPEG's header in front.
  const int orientation = std::max(tiff_orientation(exif), exif_orientation(exif));
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

}  // namespace

DecodedPicture decode_webp(std::span<const std::byte> bytes) {
  const WebPData data{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  WebPBitstreamFeatures features;
  const auto status = WebPGetFeatures(data.bytes, data.size, &features);
  SSD_VALIDATE(status == VP8_STATUS_OK, "a damaged WebP{}",
               status == VP8_STATUS_NOT_ENOUGH_DATA ? ": cut off" : "");
  SSD_VALIDATE(features.has_animation == 0, "an animated WebP; save one frame of it as a picture");
  validate_size("a WebP", features.width, features.height);
  const std::size_t channels = features.has_alpha != 0 ? 4 : 3;
  const auto row_bytes = static_cast<std::size_t>(features.width) * channels;
  std::vector<std::uint8_t> levels(row_bytes * static_cast<std::size_t>(features.height));
  const auto decode = channels == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  SSD_VALIDATE(decode(data.bytes, data.size, levels.data(), levels.size(), static_cast<int>(row_bytes)),
               "a damaged WebP, or one that is cut off");
  DecodedPicture picture;
  picture.image = {features.width, features.height, {}};
  picture.orientation = orientation_of(data);
  take_pixels(levels, channels, picture);
  return picture;
}

}  // namespace ssd
