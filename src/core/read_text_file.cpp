#include "core/read_text_file.hpp"

#include <cerrno>
#include <fstream>

#include "core/error.hpp"

namespace ssd {

std::string read_text_file(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw system_error("open", path.string(), errno != 0 ? errno : EIO);
  std::string text;
  char buffer[4096];
  while (stream.read(buffer, sizeof buffer) || stream.gcount() > 0)
    text.append(buffer, static_cast<std::size_t>(stream.gcount()));
  if (stream.bad()) throw system_error("read", path.string(), errno != 0 ? errno : EIO);
  return text;
}

}  // namespace ssd
