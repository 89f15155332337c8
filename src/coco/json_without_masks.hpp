// The text of a JSON file without the values of members named "segmentation": masks are most of a COCO file,
// and nothing here reads them. Each such array or object becomes 0; whether it was valid inside is not seen.
#pragma once

#include <simdjson.h>
#include <cstddef>
#include <filesystem>

namespace ssd {

struct JsonText {
  simdjson::padded_string buffer;  // as large as the file; only what is used of it takes memory
  std::size_t byte_count = 0;      // of the text at its begin
  std::size_t file_bytes = 0;

  simdjson::padded_string_view view() const;
};

// Throws Error with the name of the file and the system's text.
JsonText read_json_without_masks(const std::filesystem::path& path);

}  // namespace ssd
