// A picture from its file to the network's input. No torch.
#pragma once

#include <cstdint>
#include <string>

#include "image/resize.hpp"
#include "infer/picture_list.hpp"

namespace ssd {

// Not thread safe (keeps its buffers): one for each thread.
class PictureReader {
 public:
  // Decodes the file, turns it as choose_orientation says and scales it into input, (300, 300, 3) uint8.
  // Returns the picture upright. Throws Error that names the file: missing, of a format that is not read, cut off, damaged, of
  // another size than the truth's.
  RgbImage read(const Picture& picture, std::uint8_t* input);

 private:
  RgbImage decode(const Picture& picture);

  JpegDecoder decoder_;
  Resizer resizer_;
};

}  // namespace ssd
