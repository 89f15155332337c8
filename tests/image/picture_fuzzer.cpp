// libFuzzer: whatever a PNG, WebP or BMP holds, its decoder gives a picture or throws Error. Built with Clang
// and SSD_FUZZ; run: picture_fuzzer -max_len=20000 CORPUS
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/error.hpp"
#include "image/picture.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const auto picture = ssd::decode_picture(bytes);
    const auto& image = picture.image;
    if (image.pixels.size() !=
            static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 3 ||
        picture.orientation < 1 || picture.orientation > 8)
      std::abort();
  } catch (const ssd::Error&) {
  }
  return 0;
}
