#include "preprocess/check_image.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "image/encode_jpeg.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestFileBytes = std::uint64_t{1}
                                            << 31;  // no photograph; and four bytes hold its size

class FileDescriptor {
 public:
  explicit FileDescriptor(const fs::path& path) : value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~FileDescriptor() {
    if (value_ >= 0) ::close(value_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

struct ChangedFile {};

// Throws Error with the reason alone.
std::vector<std::byte> read_file(const fs::path& path) {
  const FileDescriptor file(path);
  if (file.value() < 0) throw Error(std::strerror(errno));
  struct stat status {};
  if (::fstat(file.value(), &status) != 0) throw Error(std::strerror(errno));
  SSD_VALIDATE(S_ISREG(status.st_mode), "not a file");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  SSD_VALIDATE(size <= kLargestFileBytes, "{} bytes; at most {} are read", size, kLargestFileBytes);
  std::vector<std::byte> bytes(size);
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const auto got = ::read(file.value(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(std::strerror(errno));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  struct stat after {};
  if (::fstat(file.value(), &after) != 0) throw Error(std::strerror(errno));
  if (filled != size || after.st_size != status.st_size || after.st_mtim.tv_sec != status.st_mtim.tv_sec ||
      after.st_mtim.tv_nsec != status.st_mtim.tv_nsec)
    throw ChangedFile();
  return bytes;
}

std::uint32_t colour_flags(const JpegInfo& info) {
  return info.components == 1 ? kImageGray : info.components == 4 ? kImageCmyk : 0;
}

}  // namespace

const char* describe(ImageProblemKind kind) {
  switch (kind) {
    case ImageProblemKind::none:
      return "good images";
    case ImageProblemKind::missing:
      return "images whose file is missing";
    case ImageProblemKind::unreadable:
      return "images whose file cannot be read";
    case ImageProblemKind::undecodable:
      return "images that cannot be decoded";
    case ImageProblemKind::cut_off:
      return "images that are cut off";
    case ImageProblemKind::wrong_size:
      return "images whose size is not the JSON's";
  }
  return "images with an unknown problem";
}

bool decide_raster(const ImageEntry& image, const JpegInfo& info, Raster& raster) {
  const bool has_size = image.width > 0 && image.height > 0;
  if (!has_size || (image.width == info.width && image.height == info.height)) {
    raster = {info.width, info.height, 1};
    return true;
  }
  // EXIF 2.32, tag 0x0112: 5 to 8 exchange rows and columns.
  if (info.orientation >= 5 && image.width == info.height && image.height == info.width) {
    raster = {image.width, image.height, info.orientation};
    return true;
  }
  return false;
}

bool is_source_of(const ShardData& data, std::size_t i, const fs::path& path) {
  try {
    const auto bytes = read_file(path);
    const auto digest = digest_of(bytes);
    return bytes.size() == data.source_bytes[i] &&
           data.source_digests[i] == std::array{digest.high, digest.low};
  } catch (const Error&) {
    return false;
  } catch (const ChangedFile&) {
    return false;
  }
}

// Leaves the picture as a JPEG, and in the flags what it was.
JpegInfo ImageChecker::convert(CheckedImage& image) {
  const auto format = picture_format(image.jpeg);
  const auto picture = decode_picture(image.jpeg);
  image.jpeg =
      encode_jpeg(picture.image, picture.is_gray ? JpegColors::gray : JpegColors::rgb, kConvertedQuality);
  auto& flags = image.record.flags;
  if (format == PictureFormat::png) flags |= kImageSourcePng;
  if (format == PictureFormat::webp) flags |= kImageSourceWebp;
  if (format == PictureFormat::bmp) flags |= kImageSourceBmp;
  if (picture.has_alpha) flags |= kImageSourceAlpha;
  return {picture.image.width, picture.image.height, picture.is_gray ? 1 : 3, picture.orientation};
}

// Where the transcoder gives nothing, the file's bytes stay.
void ImageChecker::encode_anew(CheckedImage& image) {
  auto& record = image.record;
  auto anew = transcoder_.transcode(image.jpeg, pixels_, static_cast<int>(record.decode_warnings));
  if (anew.source_coding == JpegCoding::progressive) record.flags |= kImageSourceProgressive;
  if (anew.source_coding == JpegCoding::arithmetic) record.flags |= kImageSourceArithmetic;
  if (anew.outcome != Transcoding::done) return;
  record.flags |= kImageEncodedAnew;
  record.restart_interval = anew.restart_interval;
  record.restart_offsets = std::move(anew.restart_offsets);
  image.jpeg = std::move(anew.bytes);
}

CheckedImage ImageChecker::check(const ImageEntry& image, const fs::path& folder, StoredJpeg stored) {
  CheckedImage result;
  result.record.image = image;
  const auto path = folder / image.file_name;
  const auto fail = [&](ImageProblemKind kind, std::string_view reason) {
    result.problem = kind;
    result.problem_text = fmt::format("'{}' (image {}): {}", path.string(), image.id.value(), reason);
    result.record.flags = kImageBad;
    result.jpeg.clear();
    return std::move(result);
  };

  if (image.file_name.empty()) return fail(ImageProblemKind::missing, "the JSON gives no file_name");
  std::error_code error;
  if (fs::status(path, error).type() == fs::file_type::not_found)
    return fail(ImageProblemKind::missing, "missing");
  try {
    result.jpeg = read_file(path);
  } catch (const Error& reason) {
    return fail(ImageProblemKind::unreadable, reason.what());
  } catch (const ChangedFile&) {
    throw Error(
        fmt::format("'{}' (image {}): changed while it was read; run ssd_preprocess again when nothing "
                    "writes there",
                    path.string(), image.id.value()));
  }
  auto& record = result.record;
  record.source_bytes = result.jpeg.size();
  record.source_digest = digest_of(result.jpeg);
  JpegInfo info;
  try {
    info = picture_format(result.jpeg) == PictureFormat::jpeg ? decoder_.read_info(result.jpeg)
                                                              : convert(result);
    record.decode_warnings = static_cast<std::uint32_t>(decoder_.decode(result.jpeg, pixels_));
  } catch (const Error& reason) {
    return fail(ImageProblemKind::undecodable, reason.what());
  }
  record.stored_width = info.width;
  record.stored_height = info.height;
  record.source_orientation = info.orientation;
  if (decoder_.is_cut_off())
    return fail(ImageProblemKind::cut_off,
                fmt::format("its {} bytes end before the picture does", result.jpeg.size()));
  Raster raster;
  if (!decide_raster(image, info, raster))
    return fail(ImageProblemKind::wrong_size,
                fmt::format("the JSON says {} x {}, the picture has {} x {} (EXIF orientation {})",
                            image.width, image.height, info.width, info.height, info.orientation));
  record.image.width = raster.width;
  record.image.height = raster.height;
  record.orientation = raster.orientation;
  record.flags |= colour_flags(info);
  if (image.width <= 0 || image.height <= 0) record.flags |= kImageSizeFromPicture;
  if (stored == StoredJpeg::anew) encode_anew(result);
  return result;
}

}  // namespace ssd
