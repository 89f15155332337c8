#include "image/jpeg.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/grown.hpp"
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

  State() { info.err = install(errors); }
  ~State() { jpeg_destroy_decompress(&info); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const char* message() const { return errors.message.data(); }

  // The structure is made anew for each picture: libjpeg would use the tables of the last one where a picture
  // lacks its own.
  bool read_header(std::span<const std::byte> bytes) {
    jpeg_destroy_decompress(&info);
    if (setjmp(errors.jump) != 0) return false;
    jpeg_create_decompress(&info);
    jpeg_save_markers(&info, JPEG_APP0 + 1, 0xFFFF);  // for the orientation
    limit_scans(info, progress);
    forget_warnings(errors);
    has_several_scans = false;
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&info, TRUE);
    return true;
  }

  // The pixels of `part`, whose corners are those of iMCUs or of the picture.
  bool read_pixels(const PixelRect& part, std::uint8_t* pixels) {
    if (setjmp(errors.jump) != 0) return false;
    info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_RGB;
    info.dct_method = JDCT_ISLOW;
    info.do_fancy_upsampling = TRUE;
    has_several_scans = jpeg_has_multiple_scans(&info);
    jpeg_start_decompress(&info);
    auto left = static_cast<JDIMENSION>(part.left);
    auto columns = static_cast<JDIMENSION>(part.right - part.left);
    const auto top = static_cast<JDIMENSION>(part.top);
    const auto bottom = static_cast<JDIMENSION>(part.bottom);
    if (columns < info.output_width) jpeg_crop_scanline(&info, &left, &columns);
    if (top > 0) jpeg_skip_scanlines(&info, top);
    const std::size_t row_bytes = std::size_t{columns} * 3;
    while (info.output_scanline < bottom) {
      std::uint8_t* target = pixels + (info.output_scanline - top) * row_bytes;
      JSAMPROW row = info.num_components == 4 ? cmyk_row.data() : target;
      jpeg_read_scanlines(&info, &row, 1);
      if (info.num_components == 4) cmyk_to_rgb(target);
    }
    if (bottom == info.output_height) {
      jpeg_finish_decompress(&info);
    } else {
      jpeg_abort_decompress(&info);
    }
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

  // The least part of the picture that libjpeg can decode alone and that gives `rect` the pixels of the
  // whole: whole iMCUs, and one more on each side where chroma is subsampled, because upsampling looks at
  // neighbours.
  PixelRect decodable_part(const PixelRect& rect) const {
    const bool is_subsampled = info.max_h_samp_factor > 1 || info.max_v_samp_factor > 1;
    const int margin = is_subsampled ? 1 : 0;
    const auto down = [&](int place, int unit) { return std::max(place / unit - margin, 0) * unit; };
    const auto up = [&](int place, int unit, int end) {
      return std::min(((place + unit - 1) / unit + margin) * unit, end);
    };
    const int unit_x = info.max_h_samp_factor * DCTSIZE, unit_y = info.max_v_samp_factor * DCTSIZE;
    const int width = static_cast<int>(info.image_width), height = static_cast<int>(info.image_height);
    return {down(rect.left, unit_x), down(rect.top, unit_y), up(rect.right, unit_x, width),
            up(rect.bottom, unit_y, height)};
  }

  RgbView read_part(const PixelRect& part, std::vector<std::uint8_t>& buffer) {
    const int width = part.right - part.left, height = part.bottom - part.top;
    const auto columns = static_cast<std::size_t>(width);
    if (info.num_components == 4) cmyk_row.resize(columns * 4);
    std::uint8_t* pixels = grown(buffer, columns * 3 * static_cast<std::size_t>(height));
    SSD_VALIDATE(read_pixels(part, pixels), "a damaged JPEG: {}", message());
    return {pixels, width, height, columns * 3};
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
  image.pixels.resize(static_cast<std::size_t>(info.width) * static_cast<std::size_t>(info.height) * 3);
  state_->read_part({0, 0, info.width, info.height}, image.pixels);
  return static_cast<int>(state_->errors.base.num_warnings);
}

RgbView JpegDecoder::decode_rect(std::span<const std::byte> bytes, const PictureSize& size,
                                 const PixelRect& rect, std::vector<std::uint8_t>& buffer) {
  expect_inside(rect, size);
  const auto info = state_->open(bytes);
  SSD_VALIDATE(info.width == size.width && info.height == size.height, "a JPEG of {}x{} pixels, not of {}x{}",
               info.width, info.height, size.width, size.height);
  const PixelRect part = state_->decodable_part(rect);
  return crop_of(state_->read_part(part, buffer), {rect.left - part.left, rect.top - part.top,
                                                   rect.right - part.left, rect.bottom - part.top});
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

}  // namespace ssd
