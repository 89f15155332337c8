// UTF-8, as Unicode 15 table 3-7 has it: no surrogates, no overlong forms.
#pragma once

#include <string>
#include <string_view>

namespace ssd {

// Throws Error for text that is not UTF-8.
void validate_utf8(std::string_view text);
bool is_utf8(std::string_view text);

// bytes as Python 2's protocol writes them: each byte as the code point of that number. decode throws Error
// for a code point above 255.
std::string latin1_to_utf8(std::string_view bytes);
std::string utf8_to_latin1(std::string_view text);

// Text of unknown origin for a message: printable ASCII, the rest as \xNN, cut after `longest` bytes.
std::string printable(std::string_view text, std::size_t longest = 80);

}  // namespace ssd
