#include "core/open_files.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <limits>

#include "core/error.hpp"

namespace ssd {
namespace {

constexpr std::size_t kSpareFiles = 16;  // logs, checkpoints, sockets of MPI that are opened later

std::size_t count_open_files() {
  namespace fs = std::filesystem;
  std::error_code failure;
  std::size_t count = 0;
  for (fs::directory_iterator entry("/proc/self/fd", failure), end; !failure && entry != end;
       entry.increment(failure))
    ++count;
  return count;
}

}  // namespace

void raise_open_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::size_t open_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<std::size_t>::max();
  return limit.rlim_cur;
}

void expect_room_for_files(std::size_t count, const std::string& whose) {
  const auto limit = open_file_limit(), needed = count_open_files() + count + kSpareFiles;
  SSD_VALIDATE(
      needed <= limit,
      "ulimit -n is {}: so many files may be open, but {} or more are needed for {}; raise it before the "
      "start: ulimit -n {} (where that is refused, the hard limit is the system's to raise)",
      limit, needed, whose, std::bit_ceil(std::max<std::size_t>(2 * needed, 1024)));
}

}  // namespace ssd
