// Log lines, to stderr; results go to stdout. Information is printed by rank 0 alone; warnings and errors may
// come from any rank, with rank and host in front where there is more than one rank. Each line is one write
// call, so that lines of several ranks do not mix. Safe to call from any thread.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace ssd {

struct LogIdentity {
  int rank = 0;
  int world_size = 1;
  std::string host;
};

// Once, after MPI has started and before other threads log.
void set_log_identity(LogIdentity identity);
const LogIdentity& log_identity();

void log_line(std::string_view line);  // as it is, from this rank

namespace detail {
void log_info(std::string_view text);
void log_warning(std::string_view text);
void log_error(std::string_view text);
}  // namespace detail

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (log_identity().rank == 0) detail::log_info(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  detail::log_warning(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  detail::log_error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ssd
