#include "coco/json_fields.hpp"

#include <charconv>
#include <cmath>

#include "coco/json_without_masks.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

using simdjson::ondemand::json_type;

// The value as an error line shows it.
std::string shown(JsonValue value) {
  json_type type{};
  if (value.type().get(type) == simdjson::SUCCESS) {
    if (type == json_type::array) return "an array";
    if (type == json_type::object) return "an object";
  }
  std::string token(value.raw_json_token());
  while (!token.empty() && std::string_view(" \t\r\n").find(token.back()) != std::string_view::npos)
    token.pop_back();
  constexpr std::size_t kLongest = 40;
  if (token.size() > kLongest) token = token.substr(0, kLongest) + "...";
  return token;
}

std::string not_a(JsonValue value, const char* wanted) {
  return fmt::format("is {}, but must be {}", shown(value), wanted);
}

constexpr double kLargestWholeDouble =
    9007199254740992.0;  // 2^53: beyond it a double may have been another integer

}  // namespace

void read_json_file(const std::filesystem::path& path,
                    const std::function<void(simdjson::ondemand::document&)>& read) {
  const auto json = read_json_without_masks(path);
  try {
    simdjson::ondemand::parser parser;
    auto document = parser.iterate(json.view()).value();
    read(document);
    const bool at_end = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
    SSD_VALIDATE(at_end, "'{}' is not valid JSON: something follows its end; write it again", path.string());
  } catch (const simdjson::simdjson_error& error) {
    throw Error(fmt::format("'{}' is not valid JSON or is cut off ({} bytes: {}); download or write it again",
                            path.string(), json.file_bytes, simdjson::error_message(error.error())));
  }
}

namespace {

// simdjson 3.0 gets some numbers of more than 19 digits wrong: value::get_double reads
// 0.12345678901234567890125 as 0.000048, number::get_double reads all of them as 0.
double exact(JsonValue value, double as_simdjson_reads_it) {
  constexpr std::size_t kMostDigits = 19;
  const auto token = value.raw_json_token();
  if (token.size() <= kMostDigits) return as_simdjson_reads_it;
  double number = 0;
  const auto read = std::from_chars(token.data(), token.data() + token.size(), number);
  return read.ec == std::errc() ? number : as_simdjson_reads_it;  // out of range: 0, or refused before
}

}  // namespace

std::optional<std::int64_t> read_integer(JsonValue value, std::string& complaint) {
  simdjson::ondemand::number number;
  if (value.get_number().get(number) == simdjson::SUCCESS) {
    if (number.is_int64()) return number.get_int64();
    if (number.is_double()) {
      const double real = exact(value, number.get_double());
      if (std::abs(real) <= kLargestWholeDouble && real == std::trunc(real))
        return static_cast<std::int64_t>(real);
    }
    complaint = fmt::format("is {}, but must be a whole number of 64 bits (decimals: up to 2^53)",
                            number.is_double() ? fmt::format("{}", exact(value, number.get_double()))
                                               : fmt::format("{}", number.get_uint64()));
    return std::nullopt;
  }
  complaint = not_a(value, "a whole number");
  return std::nullopt;
}

std::optional<double> read_number(JsonValue value, std::string& complaint) {
  double number = 0;
  if (value.get_double().get(number) == simdjson::SUCCESS && std::isfinite(number)) {
    return exact(value, number);
  }
  complaint = not_a(value, "a finite number");
  return std::nullopt;
}

std::optional<BoxXywh> read_box(JsonValue value, std::string& complaint) {
  simdjson::ondemand::array numbers;
  if (value.get_array().get(numbers) != simdjson::SUCCESS) {
    complaint = not_a(value, "4 numbers: left, top, width, height");
    return std::nullopt;
  }
  BoxXywh box{};
  std::size_t count = 0;
  for (auto element : numbers) {
    if (count < box.size()) {
      std::string inner;
      const auto number = read_number(element.value(), inner);
      if (!number) {
        complaint = fmt::format("[{}] {}", count, inner);
        return std::nullopt;
      }
      box[count] = *number;
    }
    ++count;
  }
  if (count == box.size()) return box;
  complaint = fmt::format("has {} numbers, but must have 4: left, top, width, height", count);
  return std::nullopt;
}

std::optional<std::string> read_string(JsonValue value, std::string& complaint) {
  std::string_view text;
  if (value.get_string().get(text) == simdjson::SUCCESS) return std::string(text);
  complaint = not_a(value, "a string");
  return std::nullopt;
}

std::optional<bool> read_flag(JsonValue value, std::string& complaint) {
  bool flag = false;
  if (value.get_bool().get(flag) == simdjson::SUCCESS) return flag;
  double number = 0;
  if (value.get_double().get(number) == simdjson::SUCCESS) {
    if (number == 0 || number == 1) return number == 1;
    complaint = fmt::format("is {}, but must be 0 or 1", number);
    return std::nullopt;
  }
  complaint = not_a(value, "0 or 1");
  return std::nullopt;
}

}  // namespace ssd
