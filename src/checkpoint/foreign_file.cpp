#include "checkpoint/foreign_file.hpp"

#include <string_view>

#include "core/utf8.hpp"

namespace ssd {
namespace {

std::string_view text_of(std::span<const std::byte> head) {
  return {reinterpret_cast<const char*>(head.data()), head.size()};
}

}  // namespace

Container container_of(std::span<const std::byte> head) {
  const auto text = text_of(head);
  if (text.starts_with("PK\x03\x04")) return Container::zip;
  if (text.starts_with('\x80')) return Container::legacy;  // the pickle opcode PROTO
  return Container::foreign;
}

std::string describe_foreign_file(std::span<const std::byte> head) {
  const auto text = text_of(head);
  if (text.empty()) return "an empty file";
  if (text.starts_with("version https://git-lfs"))
    return "a Git LFS pointer instead of the file (git lfs pull fetches it)";
  if (text.starts_with("\x89HDF\r\n")) return "an HDF5 file";
  if (text.size() > 9 && text.substr(8, 2) == "{\"") return "a safetensors file";
  if (text.size() > 262 && text.substr(257, 5) == "ustar")
    return "a tar file (as torch wrote before version 0.2)";
  if (text.starts_with("<!") || text.starts_with("<h") || text.starts_with("<H")) {
    return "an HTML page (a failed download?)";
  }
  return "no known format (it begins with '" + printable(text.substr(0, 16)) + "')";
}

}  // namespace ssd
