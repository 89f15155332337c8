#include "coco/detections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/atomic_file.hpp"
#include "core/error.hpp"

namespace ssd {

void write_detections(const std::filesystem::path& path, std::span<const Detection> detections) {
  fmt::memory_buffer text;
  auto out = std::back_inserter(text);
  text.push_back('[');
  for (std::size_t i = 0; i < detections.size(); ++i) {
    const auto& [image_id, category_id, box, score] = detections[i];
    const bool finite = std::isfinite(score) && std::all_of(box.begin(), box.end(), [](double value) {
                          return std::isfinite(value);
                        });
    SSD_VALIDATE(finite,
                 "cannot write '{}': detection [{}] of image {} has a score or box that is not finite",
                 path.string(), i, image_id.value());
    // {} of a double is the shortest text that reads back as the same double.
    fmt::format_to(out, "{}\n{{\"image_id\":{},\"category_id\":{},\"bbox\":[{},{},{},{}],\"score\":{}}}",
                   i == 0 ? "" : ",", image_id.value(), category_id.value(), box[0], box[1], box[2], box[3],
                   score);
  }
  const std::string_view end = detections.empty() ? "]\n" : "\n]\n";
  text.append(end);
  write_file_atomically(path, {text.data(), text.size()});
}

}  // namespace ssd
