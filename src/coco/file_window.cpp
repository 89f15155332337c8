#include "coco/file_window.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace ssd {

InputFile::InputFile(const std::filesystem::path& path) : name_(path.string()) {
  descriptor_ = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw system_error("read", name_, errno);
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw Error(fmt::format("cannot read '{}': it is not a regular file", name_));
  }
  size_ = static_cast<std::size_t>(status.st_size);
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

void InputFile::read(std::size_t offset, char* bytes, std::size_t count) const {
  while (count != 0) {
    const auto got = ::pread(descriptor_, bytes, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error("read", name_, errno);
    SSD_VALIDATE(got != 0, "cannot read '{}': it became shorter while it was read", name_);
    bytes += got;
    offset += static_cast<std::size_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

void FileWindow::open(std::size_t offset, std::size_t count, std::size_t limit) {
  limit_ = limit;
  load(offset, count);
}

bool FileWindow::grow() {
  if (offset_ + count_ == file_.size()) return false;
  constexpr std::size_t kLeast = 4096;
  const auto left = static_cast<std::size_t>(end() - at_);
  const auto wanted = std::max(2 * left, kLeast);
  SSD_VALIDATE(wanted <= limit_, "'{}': no end of a record in {} bytes", file_.name(), left);
  load(position(), wanted);
  return true;
}

char FileWindow::skip_space() {
  for (;;) {
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t') ++at_;
    if (at_ < end() || !grow()) return *at_;
  }
}

void FileWindow::load(std::size_t offset, std::size_t count) {
  count = std::min(count, file_.size() - offset);
  if (count + kPadding > capacity_) {
    capacity_ = count + kPadding;
    bytes_ = std::make_unique_for_overwrite<char[]>(capacity_);
  }
  file_.read(offset, bytes_.get(), count);
  std::memset(bytes_.get() + count, 0, kPadding);
  offset_ = offset;
  count_ = count;
  at_ = bytes_.get();
}

}  // namespace ssd
