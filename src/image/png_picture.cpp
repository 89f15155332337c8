#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "image/exif.hpp"
#include "image/picture_readers.hpp"

namespace ssd {
namespace {

// libpng's errors leave by longjmp: the functions with a setjmp hold nothing that has a destructor.
struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  png_infop end_info = nullptr;
  std::span<const std::byte> bytes;
  std::jmp_buf jump{};
  char message[200] = "";

  ~Reader() { png_destroy_read_struct(&png, &info, &end_info); }
};

Reader& reader_of(png_structp png) {
  return *static_cast<Reader*>(png_get_error_ptr(png));
}

[[noreturn]] void leave_with_error(png_structp png, png_const_charp message) {
  auto& reader = reader_of(png);
  std::snprintf(reader.message, sizeof reader.message, "%s", message);
  std::longjmp(reader.jump, 1);
}

void read_bytes(png_structp png, png_bytep to, png_size_t count) {
  auto& bytes = static_cast<Reader*>(png_get_io_ptr(png))->bytes;
  if (bytes.size() < count) png_error(png, "cut off");
  std::memcpy(to, bytes.data(), count);
  bytes = bytes.subspan(count);
}

struct Header {
  png_uint_32 width = 0, height = 0;
  std::size_t channels = 0;
};

bool read_header(Reader& reader, Header& header) {
  if (setjmp(reader.jump) != 0) return false;
  reader.info = png_create_info_struct(reader.png);
  reader.end_info = png_create_info_struct(reader.png);
  png_set_read_fn(reader.png, &reader, read_bytes);
  png_read_info(reader.png, reader.info);
  header.width = png_get_image_width(reader.png, reader.info);
  header.height = png_get_image_height(reader.png, reader.info);
  png_set_expand(reader.png);  // palettes, fewer than 8 bits, a transparent colour
  png_set_scale_16(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  header.channels = png_get_channels(reader.png, reader.info);
  return true;
}

bool read_rows(Reader& reader, png_bytep* rows) {
  if (setjmp(reader.jump) != 0) return false;
  png_read_image(reader.png, rows);
  png_read_end(reader.png, reader.end_info);
  return true;
}

int orientation_of(const Reader& reader) {
  for (png_infop info : {reader.info, reader.end_info}) {
    png_bytep exif = nullptr;
    png_uint_32 count = 0;
    if (png_get_eXIf_1(reader.png, info, &count, &exif) != 0)
      return tiff_orientation(std::as_bytes(std::span(exif, count)));
  }
  return 1;
}

}  // namespace

DecodedPicture decode_png(std::span<const std::byte> bytes) {
  Reader reader;
  reader.bytes = bytes;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, leave_with_error,
                                      [](png_structp, png_const_charp) {});
  SSD_VALIDATE(reader.png != nullptr, "no memory for a PNG");
  Header header;
  SSD_VALIDATE(read_header(reader, header), "a damaged PNG: {}", reader.message);
  validate_size("a PNG", header.width, header.height);
  const std::size_t row_bytes = header.width * header.channels;
  std::vector<std::uint8_t> levels(row_bytes * header.height);
  std::vector<png_bytep> rows(header.height);
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = levels.data() + y * row_bytes;
  SSD_VALIDATE(read_rows(reader, rows.data()), "a damaged PNG: {}", reader.message);
  DecodedPicture picture;
  picture.image = {static_cast<int>(header.width), static_cast<int>(header.height), {}};
  picture.is_gray = header.channels <= 2;
  picture.orientation = orientation_of(reader);
  take_pixels(levels, header.channels, picture);
  return picture;
}

}  // namespace ssd
