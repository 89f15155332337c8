#include "coco/json_without_masks.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "coco/file_window.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

constexpr std::size_t kWindowBytes = std::size_t{1} << 20;
constexpr std::string_view kMaskName = "\"segmentation\"";
constexpr char kReplacement = '0';

// Characters that matter inside of a mask.
constexpr std::array<bool, 256> kMaskMarks = [] {
  std::array<bool, 256> marks{};
  for (const unsigned char mark : {'"', '[', ']', '{', '}'}) marks[mark] = true;
  return marks;
}();

// Copies text given in pieces, but for masks. The output is never longer than the input.
class MaskFilter {
 public:
  explicit MaskFilter(char* out) : begin_(out), out_(out) {}

  void take(std::string_view piece) {
    const char* at = piece.data();
    const char* const end = at + piece.size();
    while (at < end) at = is_in_mask_ ? skip(at, end) : copy(at, end);
  }
  std::size_t size() const { return static_cast<std::size_t>(out_ - begin_); }

 private:
  // Takes the next character of a string.
  bool ends_string(char c) {
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (c == '\\') {
      is_escaped_ = true;
    } else if (c == '"') {
      is_in_string_ = false;
    }
    return !is_in_string_;
  }

  // Both go on to where the mask begins or ends, or to the end.
  const char* copy(const char* at, const char* end) {
    while (at < end) {
      const char c = *at++;
      if (is_in_string_) {
        *out_++ = c;
        if (ends_string(c)) {
          is_after_name_ = std::string_view(string_, static_cast<std::size_t>(out_ - string_)) == kMaskName;
        }
      } else if (c == '"') {
        is_in_string_ = true;
        is_after_colon_ = false;
        string_ = out_;
        *out_++ = c;
      } else if (is_after_colon_ && (c == '[' || c == '{')) {
        is_after_colon_ = false;
        is_in_mask_ = true;
        depth_ = 1;
        return at;
      } else {
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
          is_after_colon_ = is_after_name_ && c == ':';
          is_after_name_ = false;
        }
        *out_++ = c;
      }
    }
    return at;
  }

  const char* skip(const char* at, const char* end) {
    while (at < end) {
      const char c = *at++;
      if (is_in_string_) {
        ends_string(c);
      } else if (kMaskMarks[static_cast<unsigned char>(c)]) {
        if (c == '"') {
          is_in_string_ = true;
        } else if (c == '[' || c == '{') {
          ++depth_;
        } else if (--depth_ == 0) {
          is_in_mask_ = false;
          *out_++ = kReplacement;
          return at;
        }
      }
    }
    return at;
  }

  char* begin_;
  char* out_;
  const char* string_ = nullptr;  // the last one's quote in the output
  bool is_in_string_ = false, is_escaped_ = false, is_after_name_ = false, is_after_colon_ = false;
  bool is_in_mask_ = false;
  std::size_t depth_ = 0;
};

}  // namespace

simdjson::padded_string_view JsonText::view() const {
  return simdjson::padded_string_view(buffer.data(), byte_count, buffer.size() + simdjson::SIMDJSON_PADDING);
}

JsonText read_json_without_masks(const std::filesystem::path& path) {
  const InputFile file(path);
  JsonText text;
  text.file_bytes = file.size();
  text.buffer = simdjson::padded_string(text.file_bytes + 1);  // one of no length has no buffer
  SSD_VALIDATE(text.buffer.data() != nullptr, "cannot read '{}': out of memory", file.name());
  MaskFilter filter(text.buffer.data());
  std::vector<char> window(kWindowBytes);
  for (std::size_t at = 0; at < text.file_bytes;) {
    const auto count = std::min(text.file_bytes - at, window.size());
    file.read(at, window.data(), count);
    filter.take({window.data(), count});
    at += count;
  }
  text.byte_count = filter.size();
  std::memset(text.buffer.data() + text.byte_count, 0, simdjson::SIMDJSON_PADDING);
  return text;
}

}  // namespace ssd
