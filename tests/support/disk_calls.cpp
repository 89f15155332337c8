#include "support/disk_calls.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fcntl.h>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <mutex>
#include <optional>

namespace {

using ssd::test::Spoil;

struct Watch {
  std::string folder;
  std::vector<std::string> lines;
  std::string spoilt_line;
  std::optional<std::size_t> spoilt_number;
  Spoil how = Spoil::fail;
};

std::mutex mutex;
std::optional<Watch> watch;

// The name inside the folder; nothing for other files.
std::optional<std::string> name_of(const std::string& given) {
  const auto path = std::filesystem::weakly_canonical(given).string();
  if (path == watch->folder) return ".";
  if (!path.starts_with(watch->folder + "/")) return std::nullopt;
  const auto name = path.substr(watch->folder.size() + 1);
  const auto mark = name.find(".tmp.");
  return mark == name.npos ? name : name.substr(0, mark + 4);
}

// How the call is to be spoilt; does not come back where it kills.
std::optional<Spoil> note(const char* call, const std::string& path, const std::string& to = {}) {
  const std::lock_guard lock(mutex);
  if (!watch) return std::nullopt;
  const auto name = name_of(path), to_name = to.empty() ? std::nullopt : name_of(to);
  if (!name && !to_name) return std::nullopt;
  auto line = std::string(call) + " " + name.value_or(path);
  if (!to.empty()) line += " " + to_name.value_or(to);
  const bool is_more_of_the_same =
      std::string(call) == "write" && !watch->lines.empty() && watch->lines.back() == line;
  if (is_more_of_the_same) return std::nullopt;
  const bool is_spoilt = line == watch->spoilt_line || watch->lines.size() == watch->spoilt_number;
  watch->lines.push_back(line);
  if (!is_spoilt) return std::nullopt;
  if (watch->how == Spoil::kill) ::raise(SIGKILL);
  watch->spoilt_line.clear();
  return watch->how;
}

std::optional<Spoil> note(const char* call, int descriptor) {
  {
    const std::lock_guard lock(mutex);
    if (!watch) return std::nullopt;
  }
  char link[64], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const auto length = ::readlink(link, path, sizeof path);
  return length < 0 ? std::nullopt : note(call, std::string(path, static_cast<std::size_t>(length)));
}

std::optional<int> failure(std::optional<Spoil> spoil) {
  if (spoil == Spoil::fail) return EIO;
  if (spoil == Spoil::fail_as_invalid) return EINVAL;
  return std::nullopt;
}

// real(buffer): the system's call.
template <class Real>
ssize_t write_with(int descriptor, const void* buffer, std::size_t count, const Real& real) {
  const auto spoil = note("write", descriptor);
  if (const auto error = failure(spoil)) return errno = *error, -1;
  if (spoil != Spoil::flip || count == 0) return real(buffer);
  const auto* first = static_cast<const char*>(buffer);
  std::string changed(first, first + count);
  changed[0] = static_cast<char>(changed[0] ^ 1);
  return real(changed.data());
}

}  // namespace

extern "C" {

ssize_t write(int descriptor, const void* buffer, size_t count) {
  return write_with(descriptor, buffer, count,
                    [&](const void* bytes) { return ::syscall(SYS_write, descriptor, bytes, count); });
}

ssize_t pwrite(int descriptor, const void* buffer, size_t count, off_t offset) {
  return write_with(descriptor, buffer, count, [&](const void* bytes) {
    return ::syscall(SYS_pwrite64, descriptor, bytes, count, offset);
  });
}

ssize_t pwrite64(int descriptor, const void* buffer, size_t count, off64_t offset) {
  return pwrite(descriptor, buffer, count, offset);
}

int fsync(int descriptor) {
  if (const auto error = failure(note("fsync", descriptor))) return errno = *error, -1;
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

int posix_fadvise(int descriptor, off_t offset, off_t length, int advice) noexcept {
  note("forget", descriptor);
  return ::syscall(SYS_fadvise64, descriptor, offset, length, advice) == 0 ? 0 : errno;
}

int rename(const char* from, const char* to) noexcept {
  if (const auto error = failure(note("rename", from, to))) return errno = *error, -1;
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int unlink(const char* path) noexcept {
  if (const auto error = failure(note("unlink", path))) return errno = *error, -1;
  return static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

int remove(const char* path) noexcept {  // what std::filesystem::remove calls
  if (::unlink(path) == 0) return 0;
  return errno == EISDIR ? static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR)) : -1;
}
}

namespace ssd::test {

DiskCalls::DiskCalls(const std::filesystem::path& folder) {
  const std::lock_guard lock(mutex);
  watch.emplace().folder = std::filesystem::weakly_canonical(folder).string();
}

DiskCalls::~DiskCalls() {
  const std::lock_guard lock(mutex);
  watch.reset();
}

std::vector<std::string> DiskCalls::lines() const {
  const std::lock_guard lock(mutex);
  return watch->lines;
}

void DiskCalls::spoil(const std::string& line, Spoil how) {
  const std::lock_guard lock(mutex);
  watch->spoilt_line = line;
  watch->how = how;
}

void DiskCalls::spoil_number(std::size_t number, Spoil how) {
  const std::lock_guard lock(mutex);
  watch->spoilt_number = number;
  watch->how = how;
}

}  // namespace ssd::test
