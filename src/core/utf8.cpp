#include "core/utf8.hpp"

#include "core/error.hpp"

namespace ssd {
namespace {

// One code point from the front of text, which is not empty. Throws Error.
char32_t take_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80       ? 1
                             : first >> 5 == 6  ? 2
                             : first >> 4 == 14 ? 3
                             : first >> 3 == 30 ? 4
                                                : 0;
  bool good = length != 0 && length <= text.size();
  char32_t point = length == 1 ? first : first & (0x7FU >> length);
  for (std::size_t i = 1; good && i < length; ++i) {
    good = byte(i) >> 6 == 2;
    point = point << 6 | (byte(i) & 0x3FU);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  good = good && point >= kSmallest[length] && point <= 0x10FFFF && !(point >= 0xD800 && point < 0xE000);
  SSD_VALIDATE(good, "a text is not UTF-8: '{}'", printable(text));
  text.remove_prefix(length);
  return point;
}

}  // namespace

void validate_utf8(std::string_view text) {
  while (!text.empty()) take_code_point(text);
}

bool is_utf8(std::string_view text) {
  try {
    validate_utf8(text);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string latin1_to_utf8(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text.push_back(c);
    } else {
      text.push_back(static_cast<char>(0xC0 | byte >> 6));
      text.push_back(static_cast<char>(0x80 | (byte & 0x3F)));
    }
  }
  return text;
}

std::string utf8_to_latin1(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const auto point = take_code_point(text);
    SSD_VALIDATE(point <= 0xFF, "bytes hold the code point {} (at most 255)",
                 static_cast<std::uint32_t>(point));
    bytes.push_back(static_cast<char>(point));
  }
  return bytes;
}

std::string printable(std::string_view text, std::size_t longest) {
  std::string shown;
  for (const char c : text.substr(0, longest)) {
    if (c >= ' ' && c <= '~') {
      shown.push_back(c);
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (text.size() > longest) shown += "...";
  return shown;
}

}  // namespace ssd
