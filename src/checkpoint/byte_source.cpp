#include "checkpoint/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ssd {
namespace {

[[noreturn]] void throw_read_error(const char* what, const std::filesystem::path& path, int error_number) {
  const auto error = system_error(what, path, error_number);
  if (error_number == ESTALE) throw StaleFileError(error.what());
  throw error;
}

}  // namespace

void ByteSource::read(std::uint64_t offset, std::span<std::byte> buffer) const {
  SSD_VALIDATE(offset <= size() && size() - offset >= buffer.size(),
               "{} bytes at {} lie beyond the end of the file ({} bytes); it is cut short or damaged",
               buffer.size(), offset, size());
  read_within(offset, buffer);
}

std::vector<std::byte> ByteSource::read(std::uint64_t offset, std::uint64_t bytes) const {
  SSD_VALIDATE(offset <= size() && size() - offset >= bytes,
               "{} bytes at {} lie beyond the end of the file ({} bytes); it is cut short or damaged", bytes,
               offset, size());
  std::vector<std::byte> buffer(bytes);
  read_within(offset, buffer);
  return buffer;
}

void MemorySource::read_within(std::uint64_t offset, std::span<std::byte> buffer) const {
  if (!buffer.empty()) std::memcpy(buffer.data(), bytes_.data() + offset, buffer.size());
}

FileSource::FileSource(std::filesystem::path path) : path_(std::move(path)) {
  // Non-blocking, so that a named pipe does not hang the open; it has no effect on regular files.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw_read_error("open", path_, errno);
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    const int error_number = errno;
    ::close(descriptor_);
    throw_read_error("read", path_, error_number);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw Error(fmt::format("cannot read '{}': it is not a regular file", path_.string()));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

FileSource::~FileSource() {
  ::close(descriptor_);
}

void FileSource::read_within(std::uint64_t offset, std::span<std::byte> buffer) const {
  constexpr std::size_t kLargestRead = std::size_t{1} << 30;  // one read call gives less than 2 GiB
  while (!buffer.empty()) {
    const auto got = ::pread(descriptor_, buffer.data(), std::min(buffer.size(), kLargestRead),
                             static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_read_error("read", path_, errno);
    SSD_VALIDATE(got > 0, "cannot read '{}': it became shorter while it was read", path_.string());
    buffer = buffer.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

}  // namespace ssd
