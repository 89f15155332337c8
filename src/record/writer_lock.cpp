#include "record/writer_lock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/host_name.hpp"
#include "core/log.hpp"

namespace ssd {
namespace {

// "process 17 on host", as the holder wrote it.
std::string holder_of(int descriptor) {
  std::array<char, 300> text{};
  const auto size = ::pread(descriptor, text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : "another process";
}

// Whether the file that was opened is the one that has the name now: its last holder may have removed it.
bool has_name(int descriptor, const std::filesystem::path& path) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace

WriterLock::WriterLock(std::filesystem::path path, const std::string& what) : path_(std::move(path)) {
  try {
    while (!try_lock(what)) ::close(std::exchange(descriptor_, -1));
    const auto text = fmt::format("process {} on {}", ::getpid(), host_name());
    if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, text.data(), text.size(), 0) < 0)
      throw system_error("write", path_, errno);
  } catch (...) {
    if (descriptor_ >= 0) ::close(descriptor_);
    throw;
  }
}

// False where the file lost its name before it was locked.
bool WriterLock::try_lock(const std::string& what) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw system_error("write", path_, errno);
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  if (::fcntl(descriptor_, F_OFD_SETLK, &range) != 0) {
    const int error = errno;
    SSD_VALIDATE(error != EACCES && error != EAGAIN, "'{}': {} is writing {} there; wait for it, or end it",
                 path_.parent_path().string(), holder_of(descriptor_), what);
    log_warning("'{}': {}; two runs that write {} there at once would not be noticed",
                path_.parent_path().string(), std::strerror(error), what);
  }
  return has_name(descriptor_, path_);
}

WriterLock::~WriterLock() {
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

}  // namespace ssd
