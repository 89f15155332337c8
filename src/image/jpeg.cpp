#include "image/jpeg.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "image/exif.hpp"
#include "image/libjpeg.hpp"

namespace ssd {
namespace {

bool is_jpeg(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0xFF} && bytes[1] == std::byte{0xD8};
}

}  // namespace

// One libjpeg decompressor. The functions with a setjmp return false after an error; message() says which.
struct JpegDecoder::State {
  jpeg_decompress_struct info{};
  LibjpegErrors errors{};
  jpeg_progress_mgr progress{};
  bool has_several_scans = false;
  std::vector<std::uint8_t> cmyk_row;

  State() {
    info.err = install(errors);
    if (!create()) throw Error(fmt::format("libjpeg: {}", message()));
    limit_scans(info, progress);
  }
  ~State() { jpeg_destroy_decompress(&info); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const char* message() const { return errors.message.data(); }

  bool create() {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_create_decompress(&info);
    jpeg_save_markers(&info, JPEG_APP0 + 1, 0xFFFF);  // for the orientation
    return true;
  }

  bool read_header(std::span<const std::byte> bytes) {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_abort_decompress(&info);
    forget_warnings(errors);
    has_several_scans = false;
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&info, TRUE);
    return true;
  }

  bool read_pixels(std::uint8_t* pixels) {
    if (setjmp(errors.jump) != 0) return false;
    info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_RGB;
    info.dct_method = JDCT_ISLOW;
    info.do_fancy_upsampling = TRUE;
    has_several_scans = jpeg_has_multiple_scans(&info);
    jpeg_start_decompress(&info);
    const std::size_t row_bytes = std::size_t{info.output_width} * 3;
    while (info.output_scanline < info.output_height) {
      std::uint8_t* target = pixels + info.output_scanline * row_bytes;
      JSAMPROW row = info.num_components == 4 ? cmyk_row.data() : target;
      jpeg_read_scanlines(&info, &row, 1);
      if (info.num_components == 4) cmyk_to_rgb(target);
    }
    jpeg_finish_decompress(&info);
    return true;
  }

  // Adobe writes CMYK inverted (0 = full ink); libjpeg turns YCCK into CMYK and leaves that as it is.
  void cmyk_to_rgb(std::uint8_t* rgb) const {
    const int flip = info.saw_Adobe_marker ? 0 : 255;
    for (std::size_t x = 0; x < info.output_width; ++x) {
      const std::uint8_t* cmyk = cmyk_row.data() + 4 * x;
      const int k = cmyk[3] ^ flip;
      for (std::size_t c = 0; c < 3; ++c)
        rgb[3 * x + c] = static_cast<std::uint8_t>((cmyk[c] ^ flip) * k / 255);
    }
  }

  JpegInfo open(std::span<const std::byte> bytes) {
    SSD_VALIDATE(!bytes.empty(), "an empty file");
    SSD_VALIDATE(is_jpeg(bytes), "not a JPEG (it begins with {:02x}, not with ff d8)",
                 fmt::join(std::as_bytes(bytes.first(std::min<std::size_t>(bytes.size(), 4))), " "));
    SSD_VALIDATE(read_header(bytes), "not a JPEG that can be read: {}", message());
    JpegInfo result;
    result.width = static_cast<int>(info.image_width);
    result.height = static_cast<int>(info.image_height);
    result.components = info.num_components;
    SSD_VALIDATE(std::int64_t{result.width} * result.height <= kLargestPictureInPixels,
                 "a JPEG of {} x {} pixels; at most {} pixels are read", result.width, result.height,
                 kLargestPictureInPixels);
    SSD_VALIDATE(result.components == 1 || result.components == 3 || result.components == 4,
                 "a JPEG of {} components; 1 (gray), 3 (colour) or 4 (CMYK) are read", result.components);
    return result;
  }
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {}
JpegDecoder::~JpegDecoder() = default;
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;

int JpegDecoder::decode(std::span<const std::byte> bytes, RgbImage& image) {
  const auto info = state_->open(bytes);
  image.width = info.width;
  image.height = info.height;
  const auto width = static_cast<std::size_t>(info.width);
  image.pixels.resize(width * static_cast<std::size_t>(info.height) * 3);
  if (info.components == 4) state_->cmyk_row.resize(width * 4);
  SSD_VALIDATE(state_->read_pixels(image.pixels.data()), "a damaged JPEG: {}", state_->message());
  return static_cast<int>(state_->errors.base.num_warnings);
}

bool JpegDecoder::is_cut_off() const {
  const auto& errors = state_->errors;
  return errors.met_end_of_bytes && (errors.ran_out_of_bits || state_->has_several_scans);
}

JpegInfo JpegDecoder::read_info(std::span<const std::byte> bytes) {
  auto result = state_->open(bytes);
  for (auto marker = state_->info.marker_list; marker != nullptr; marker = marker->next) {
    result.orientation = exif_orientation(std::as_bytes(std::span(marker->data, marker->data_length)));
    if (result.orientation != 1) break;
  }
  return result;
}

JpegInfo read_jpeg_info(std::span<const std::byte> bytes) {
  return JpegDecoder().read_info(bytes);
}

RgbImage apply_orientation(const RgbImage& stored, int orientation) {
  SSD_EXPECT(orientation >= 1 && orientation <= 8);
  // EXIF 2.32, tag 0x0112: which side of the picture row 0 and column 0 of the stored raster are.
  const bool is_transposed = orientation >= 5;
  const bool is_mirrored_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool is_mirrored_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  RgbImage upright;
  upright.width = is_transposed ? stored.height : stored.width;
  upright.height = is_transposed ? stored.width : stored.height;
  upright.pixels.resize(stored.pixels.size());
  std::uint8_t* target = upright.pixels.data();
  for (int y = 0; y < upright.height; ++y) {
    for (int x = 0; x < upright.width; ++x, target += 3) {
      int source_x = is_transposed ? y : x;
      int source_y = is_transposed ? x : y;
      if (is_mirrored_x) source_x = stored.width - 1 - source_x;
      if (is_mirrored_y) source_y = stored.height - 1 - source_y;
      const auto place = static_cast<std::size_t>(source_y) * static_cast<std::size_t>(stored.width) +
                         static_cast<std::size_t>(source_x);
      std::copy_n(stored.pixels.data() + 3 * place, 3, target);
    }
  }
  return upright;
}

}  // namespace ssd
