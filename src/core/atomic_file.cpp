#include "core/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/error.hpp"
#include "core/host_name.hpp"

namespace ssd {
namespace {

constexpr std::string_view kTemporaryMark = ".tmp.";

void sync_descriptor(int descriptor, const std::filesystem::path& path) {
  // Folders on some network file systems cannot be synced (EINVAL); there the rename itself is durable.
  if (::fsync(descriptor) != 0 && errno != EINVAL) throw system_error("sync", path, errno);
}

}  // namespace

std::filesystem::path temporary_path_for(const std::filesystem::path& path) {
  return path.parent_path() /
         fmt::format(".{}{}{}.{}", path.filename().string(), kTemporaryMark, host_name(), ::getpid());
}

bool is_temporary_name(std::string_view file_name) {
  return file_name.starts_with('.') && file_name.find(kTemporaryMark) != std::string_view::npos;
}

void sync_path(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw system_error("open", path, errno);
  try {
    sync_descriptor(descriptor, path);
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  ::close(descriptor);
}

void rename_durably(const std::filesystem::path& temporary, const std::filesystem::path& path) {
  sync_path(temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0) throw system_error("rename to", path, errno);
  const auto folder = path.parent_path();
  sync_path(folder.empty() ? "." : folder);
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(temporary_path_for(path_)) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw system_error("create", temporary_, errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  SSD_EXPECT(descriptor_ >= 0);
  constexpr std::size_t kLargestWrite = std::size_t{1} << 30;  // one write call takes less than 2 GiB
  while (!bytes.empty()) {
    const auto written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error("write", path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  SSD_EXPECT(descriptor_ >= 0);
  sync_descriptor(descriptor_, path_);
  // Network file systems report a full disk at close.
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0) {
    const int error_number = errno;
    ::unlink(temporary_.c_str());
    throw system_error("close", path_, error_number);
  }
  try {
    rename_durably(temporary_, path_);
  } catch (...) {
    ::unlink(temporary_.c_str());
    throw;
  }
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace ssd
