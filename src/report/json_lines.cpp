#include "report/json_lines.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.hpp"

namespace ssd {
namespace {

// True where the last line of the file was not finished: the run before was stopped while it wrote.
bool ends_inside_a_line(int descriptor) {
  const auto size = ::lseek(descriptor, 0, SEEK_END);
  char last = '\n';
  return size > 0 && ::pread(descriptor, &last, 1, size - 1) == 1 && last != '\n';
}

}  // namespace

JsonLines::JsonLines(const std::filesystem::path& path) : path_(path.string()) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw system_error("open", path_, errno);
  if (!ends_inside_a_line(descriptor_)) return;
  try {
    write_text("\n");
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

JsonLines::~JsonLines() {
  ::close(descriptor_);
}

void JsonLines::log(const Json& step, const Json& data) {
  auto line = stamp("LOG");
  line["step"] = step;
  line["data"] = data;
  write_line(line);
}

void JsonLines::parameters(const Json& data) {
  log("PARAMETER", data);
}

void JsonLines::metadata(const std::string& metric, const Json& metadata) {
  auto line = stamp("METADATA");
  line["metric"] = metric;
  line["metadata"] = metadata;
  write_line(line);
}

// DLLogger writes the three times as strings.
JsonLines::Json JsonLines::stamp(const char* type) const {
  const auto now = std::chrono::system_clock::now();
  const auto microseconds =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  const auto elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const auto local = fmt::localtime(std::chrono::system_clock::to_time_t(now));
  return {{"timestamp", fmt::format("{}.{:06}", microseconds / 1000000, microseconds % 1000000)},
          {"datetime", fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06}", local, microseconds % 1000000)},
          {"elapsedtime", fmt::format("{:.6f}", elapsed)},
          {"type", type}};
}

void JsonLines::write_line(const Json& line) {
  write_text("DLLL " + line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void JsonLines::write_text(std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error("write", path_, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace ssd
