#include "coco/detections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "coco/json_fields.hpp"
#include "core/atomic_file.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

// The fields of one detection; every complaint is an Error that names file and index.
class RecordReader {
 public:
  RecordReader(const std::string& file, std::size_t index) : file_(file), index_(index) {}

  template <class T>
  T field(const char* key, std::optional<T> (*read_value)(JsonValue, std::string&), JsonValue value) const {
    std::string complaint;
    auto result = read_value(value, complaint);
    const char* space = complaint.starts_with('[') ? "" : " ";  // "bbox[0] is ..."
    SSD_VALIDATE(result.has_value(), "'{}': detection [{}]: {}{}{}", file_, index_, key, space, complaint);
    return *result;
  }

  Detection read(simdjson::ondemand::object record) const {
    std::optional<std::int64_t> image_id;
    std::optional<std::int64_t> category_id;
    std::optional<BoxXywh> box;
    std::optional<double> score;
    for (auto member : record) {
      const std::string_view key = member.unescaped_key();
      if (key == "image_id") image_id = field("image_id", read_integer, member.value());
      if (key == "category_id") category_id = field("category_id", read_integer, member.value());
      if (key == "bbox") box = field("bbox", read_box, member.value());
      if (key == "score") score = field("score", read_number, member.value());
    }
    require(image_id.has_value(), "image_id");
    require(category_id.has_value(), "category_id");
    require(box.has_value(), "bbox");
    require(score.has_value(), "score");
    return {ImageId(*image_id), CategoryId(*category_id), *box, *score};
  }

 private:
  void require(bool present, const char* key) const {
    SSD_VALIDATE(present, "'{}': detection [{}] has no {}", file_, index_, key);
  }

  const std::string& file_;
  std::size_t index_;
};

}  // namespace

std::vector<Detection> read_detections(const std::filesystem::path& path) {
  const std::string file = path.string();
  std::vector<Detection> detections;
  read_json_file(path, [&](simdjson::ondemand::document& document) {
    simdjson::ondemand::array records;
    const auto error = document.get_array().get(records);
    SSD_VALIDATE(error != simdjson::INCORRECT_TYPE,
                 "'{}' is not a COCO results file: its top is not an array of detections", file);
    if (error != simdjson::SUCCESS) throw simdjson::simdjson_error(error);
    for (auto element : records) {
      simdjson::ondemand::object record;
      SSD_VALIDATE(element.get_object().get(record) == simdjson::SUCCESS,
                   "'{}': detection [{}] is not an object", file, detections.size());
      detections.push_back(RecordReader(file, detections.size()).read(record));
    }
  });
  return detections;
}

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
