#include "infer/read_picture.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "core/error.hpp"
#include "core/log.hpp"
#include "data/batch.hpp"
#include "image/orientation.hpp"
#include "image/picture.hpp"

namespace ssd {
namespace {

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Error(std::strerror(errno));
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  SSD_VALIDATE(!error, "{}", error.message());
  std::vector<std::byte> bytes(size);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  SSD_VALIDATE(stream.gcount() == static_cast<std::streamsize>(size), "cannot be read to its end");
  return bytes;
}

}  // namespace

RgbImage PictureReader::decode(const Picture& picture) {
  const auto bytes = read_file(picture.path);
  if (picture_format(bytes) != PictureFormat::jpeg) {
    auto decoded = decode_picture(bytes);
    const int orientation = choose_orientation(
        {decoded.image.width, decoded.image.height, 3, decoded.orientation}, picture.truth);
    return orientation == 1 ? std::move(decoded.image) : apply_orientation(decoded.image, orientation);
  }
  const int orientation = choose_orientation(decoder_.read_info(bytes), picture.truth);
  RgbImage stored;
  const int warnings = decoder_.decode(bytes, stored);
  SSD_VALIDATE(!decoder_.is_cut_off(), "cut off: its {} bytes end before the picture does", bytes.size());
  if (warnings != 0)
    log_warning("'{}': damaged, but it can be decoded ({} warnings)", picture.path.string(), warnings);
  return orientation == 1 ? stored : apply_orientation(stored, orientation);
}

RgbImage PictureReader::read(const Picture& picture, std::uint8_t* input) {
  try {
    auto upright = decode(picture);
    resizer_.resize(view_of(upright), kInputSide, kInputSide, input);
    return upright;
  } catch (const Error& error) {
    throw Error(fmt::format("'{}': {}", picture.path.string(), error.what()));
  }
}

}  // namespace ssd
