#include "core/log.hpp"

#include <unistd.h>

#include <utility>

namespace ssd {
namespace {

LogIdentity& identity() {
  static LogIdentity instance;
  return instance;
}

std::string rank_prefix() {
  const auto& self = identity();
  if (self.world_size == 1) return {};
  return fmt::format("[rank {} on {}] ", self.rank, self.host);
}

}  // namespace

void set_log_identity(LogIdentity value) {
  identity() = std::move(value);
}
const LogIdentity& log_identity() {
  return identity();
}

void log_line(std::string_view line) {
  std::string text(line);
  text.push_back('\n');
  // A log that cannot be written must not stop the run.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

namespace detail {

void log_info(std::string_view text) {
  log_line(text);
}
void log_warning(std::string_view text) {
  log_line(fmt::format("{}warning: {}", rank_prefix(), text));
}
void log_error(std::string_view text) {
  log_line(fmt::format("{}error: {}", rank_prefix(), text));
}

}  // namespace detail
}  // namespace ssd
