#include "coco/plain_record.hpp"

#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace ssd {
namespace {

bool is_digit(char character) {
  return static_cast<unsigned char>(character - '0') < 10;
}

const char* skip_space(const char* at) {
  while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t') ++at;
  return at;
}

// Of eight characters at once (Lemire, "Number Parsing at a Gigabyte per Second", 2021, section 3).
bool are_eight_digits(std::uint64_t characters) {
  return ((characters & 0xf0f0f0f0f0f0f0f0) |
          (((characters + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) >> 4)) == 0x3333333333333333;
}
std::uint64_t value_of_eight_digits(std::uint64_t characters) {
  characters -= 0x3030303030303030;
  characters = characters * 10 + (characters >> 8);
  return ((characters & 0x000000ff000000ff) * 0x000f424000000064 +
          ((characters >> 16) & 0x000000ff000000ff) * 0x0000271000000001) >>
         32;
}

// Null where it is not a JSON number, or one whose value takes more care.
const char* plain_double(const char* at, double& value) {
  const char* const first = at;
  const bool is_negative = *at == '-';
  if (is_negative) ++at;
  const char* const digits = at;
  if (!is_digit(*at) || (*at == '0' && is_digit(at[1]))) return nullptr;
  std::uint64_t whole = 0;  // all digits as one number; wraps around where they are more than 19
  do {
    whole = whole * 10 + static_cast<std::uint64_t>(*at++ - '0');
  } while (is_digit(*at));
  auto digit_count = at - digits;
  std::int64_t exponent = 0;
  if (*at == '.') {
    const char* const decimals = ++at;
    std::uint64_t eight = 0;
    for (std::memcpy(&eight, at, 8); are_eight_digits(eight); std::memcpy(&eight, at, 8)) {
      whole = whole * 100000000 + value_of_eight_digits(eight);
      at += 8;
    }
    while (is_digit(*at)) whole = whole * 10 + static_cast<std::uint64_t>(*at++ - '0');
    if (at == decimals) return nullptr;
    digit_count += at - decimals;
    exponent = decimals - at;
  }
  if (*at == 'e' || *at == 'E') {
    ++at;
    const bool is_small = *at == '-';
    if (*at == '-' || *at == '+') ++at;
    const char* const exponent_digits = at;
    std::int64_t power = 0;
    while (is_digit(*at) && at - exponent_digits < 5) power = power * 10 + (*at++ - '0');
    if (at == exponent_digits || is_digit(*at)) return nullptr;
    exponent += is_small ? -power : power;
  }
  constexpr std::int64_t kLargestPower = 300;  // far from overflow and underflow with 19 digits
  if (digit_count <= 19 && std::abs(exponent) <= kLargestPower) {
    using simdjson::SIMDJSON_BUILTIN_IMPLEMENTATION::numberparsing::compute_float_64;
    if (compute_float_64(exponent, whole, is_negative, value) && std::isfinite(value)) return at;
  }
  const auto [end, error] = std::from_chars(first, at, value);
  return error == std::errc() && end == at && std::isfinite(value) ? at : nullptr;
}

const char* plain_id(const char* at, std::int64_t& value) {
  const bool is_negative = *at == '-';
  if (is_negative) ++at;
  if (!is_digit(*at) || (*at == '0' && is_digit(at[1]))) return nullptr;
  constexpr int kMostDigits = 18;  // of which none overflows
  std::int64_t number = 0;
  for (int i = 0; i < kMostDigits && is_digit(*at); ++i) number = number * 10 + (*at++ - '0');
  if (is_digit(*at) || *at == '.' || *at == 'e' || *at == 'E') return nullptr;
  value = is_negative ? -number : number;
  return at;
}

const char* plain_box(const char* at, BoxXywh& box) {
  if (*at++ != '[') return nullptr;
  for (std::size_t i = 0; i < box.size(); ++i) {
    at = plain_double(skip_space(at), box[i]);
    if (at == nullptr) return nullptr;
    at = skip_space(at);
    if (*at++ != (i + 1 < box.size() ? ',' : ']')) return nullptr;
  }
  return at;
}

// The place behind a string of plain ASCII without escapes.
const char* skip_plain_string(const char* at) {
  if (*at++ != '"') return nullptr;
  while (*at != '"') {
    if (static_cast<unsigned char>(*at) < 0x20 || static_cast<unsigned char>(*at) >= 0x80 || *at == '\\')
      return nullptr;
    ++at;
  }
  return at + 1;
}

// A string of ASCII, whatever its escapes.
const char* skip_ascii_string(const char* at) {
  while (*++at != '"') {
    if (*at == '\\') ++at;
    if (static_cast<unsigned char>(*at) < 0x20 || static_cast<unsigned char>(*at) >= 0x80) return nullptr;
  }
  return at + 1;
}

// The value of a field that is not asked for: a segmentation, perhaps. As simdjson does, it looks at the
// brackets alone of arrays and objects; words (true, null, NaN) are left to simdjson.
const char* skip_value(const char* at) {
  if (*at == '"') return skip_ascii_string(at);
  if (*at != '[' && *at != '{') {
    double ignored = 0;
    return plain_double(at, ignored);
  }
  std::size_t depth = 0;
  do {
    if (*at == '"') {
      at = skip_ascii_string(at);
      if (at == nullptr) return nullptr;
      continue;
    }
    if (static_cast<unsigned char>(*at) >= 0x80 || *at == '\0') return nullptr;
    if (*at == '[' || *at == '{') ++depth;
    if (*at == ']' || *at == '}') --depth;
    ++at;
  } while (depth != 0);
  return at;
}

enum Field : unsigned { kImageId = 1, kCategoryId = 2, kBox = 4, kScore = 8, kAllFields = 15 };

bool starts_with(const char* at, std::string_view text) {
  return std::memcmp(at, text.data(), text.size()) == 0;
}

// at: behind the first quote of the key.
const char* read_field(const char* at, Detection& detection, unsigned& fields) {
  const auto value_after = [&](std::size_t key_length) -> const char* {
    const char* colon = skip_space(at + key_length);
    return *colon == ':' ? skip_space(colon + 1) : nullptr;
  };
  const auto read_value = [&](std::string_view key, Field field, auto read) -> const char* {
    const char* value = value_after(key.size());
    fields |= field;
    return value == nullptr ? nullptr : read(value);
  };
  std::int64_t id = 0;
  if (starts_with(at, "image_id\"")) {
    at = read_value("image_id\"", kImageId, [&](const char* value) { return plain_id(value, id); });
    detection.image_id = ImageId(id);
    return at;
  }
  if (starts_with(at, "category_id\"")) {
    at = read_value("category_id\"", kCategoryId, [&](const char* value) { return plain_id(value, id); });
    detection.category_id = CategoryId(id);
    return at;
  }
  if (starts_with(at, "bbox\"")) {
    return read_value("bbox\"", kBox,
                      [&](const char* value) { return plain_box(value, detection.bbox_xywh); });
  }
  if (starts_with(at, "score\"")) {
    return read_value("score\"", kScore,
                      [&](const char* value) { return plain_double(value, detection.score); });
  }
  const char* key_end = skip_plain_string(at - 1);
  if (key_end == nullptr) return nullptr;
  const char* value = value_after(static_cast<std::size_t>(key_end - at));
  return value == nullptr ? nullptr : skip_value(value);
}

}  // namespace

const char* read_plain_record(const char* at, const char* end, Detection& detection) {
  if (*at != '{') return nullptr;
  unsigned fields = 0;
  do {
    at = skip_space(at + 1);
    if (*at != '"') return nullptr;
    at = read_field(at + 1, detection, fields);
    if (at == nullptr) return nullptr;
    at = skip_space(at);
  } while (*at == ',');
  if (*at != '}' || at >= end || fields != kAllFields) return nullptr;
  return at + 1;
}

const char* end_of_value(const char* at, const char* end) {
  std::size_t depth = 0;
  bool is_string = false;
  for (; at < end; ++at) {
    const char character = *at;
    if (is_string) {
      if (character == '\\') {
        ++at;
      } else if (character == '"') {
        is_string = false;
        if (depth == 0) return at + 1;
      }
      continue;
    }
    if (character == '"') {
      is_string = true;
    } else if (character == '{' || character == '[') {
      ++depth;
    } else if (character == '}' || character == ']') {
      if (depth == 0) return at;  // behind a word
      if (--depth == 0) return at + 1;
    } else if (character == ',' && depth == 0) {
      return at;
    }
  }
  return nullptr;
}

}  // namespace ssd
