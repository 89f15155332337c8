#include "coco/any_record.hpp"

#include <cstdint>
#include <optional>

#include "coco/json_fields.hpp"
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

Detection AnyRecordReader::read(std::string_view record, const std::string& file, std::size_t index) {
  try {
    const simdjson::padded_string text(record);
    auto document = parser_.iterate(text).value();
    simdjson::ondemand::object object;
    const auto error = document.get_object().get(object);
    SSD_VALIDATE(error != simdjson::INCORRECT_TYPE, "'{}': detection [{}] is not an object", file, index);
    if (error != simdjson::SUCCESS) throw simdjson::simdjson_error(error);
    const auto detection = RecordReader(file, index).read(object);
    if (document.current_location().error() != simdjson::OUT_OF_BOUNDS)
      throw simdjson::simdjson_error(simdjson::TRAILING_CONTENT);
    return detection;
  } catch (const simdjson::simdjson_error& error) {
    throw Error(fmt::format("'{}' is not valid JSON at detection [{}] ({}); write it again", file, index,
                            simdjson::error_message(error.error())));
  }
}

}  // namespace ssd
