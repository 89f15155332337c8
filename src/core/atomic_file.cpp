#include "core/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
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

namespace fs = std::filesystem;

// The path with the links that it ends in followed, also where nothing is at their end.
fs::path follow_links(fs::path path) {
  constexpr int kLargestChain = 40;  // as Linux has it (path_resolution(7))
  std::error_code error;
  for (int i = 0; i < kLargestChain; ++i) {
    const auto target = fs::read_symlink(path, error);
    if (error) return path;  // no link
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  throw system_error("write", path, ELOOP);
}

// What is at a path; nothing where there is nothing.
std::optional<struct stat> status_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return status;
  if (errno == ENOENT) return std::nullopt;
  throw system_error("write", path, errno);
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
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
  sync_path(folder_of(path));
}

void validate_output_path(const fs::path& path) {
  const auto target = follow_links(path);
  SSD_VALIDATE(!path.empty() && path.has_filename(), "'{}' is not the name of a file to write",
               path.string());
  if (const auto status = status_of(target)) {
    if (S_ISDIR(status->st_mode)) throw system_error("write", path, EISDIR);
    if (::access(target.c_str(), W_OK) != 0) throw system_error("write", path, errno);
    if (!S_ISREG(status->st_mode)) return;
  }
  // A file is replaced by one that is made beside it.
  const auto folder = folder_of(target);
  const auto status = status_of(folder);
  SSD_VALIDATE(status, "cannot write '{}': no folder '{}'; make it first", path.string(), folder.string());
  if (!S_ISDIR(status->st_mode)) throw system_error("write", path, ENOTDIR);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) throw system_error("write into", folder, errno);
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(follow_links(std::move(path))) {
  const auto existing = status_of(path_);
  if (existing && !S_ISREG(existing->st_mode)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw system_error("write", path_, errno);
    return;
  }
  temporary_ = temporary_path_for(path_);
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw system_error("create", temporary_, errno);
  if (!existing) return;
  // The owner first: it takes the set-user-ID bits away. Others than root may give a file to a group of
  // theirs alone; where even that is refused the new file is the writer's.
  if (::fchown(descriptor_, existing->st_uid, existing->st_gid) != 0)
    (void)!::fchown(descriptor_, static_cast<uid_t>(-1), existing->st_gid);
  if (::fchmod(descriptor_, existing->st_mode & 07777) != 0) {
    const int error_number = errno;
    ::close(std::exchange(descriptor_, -1));
    ::unlink(temporary_.c_str());
    throw system_error("set the mode of", temporary_, error_number);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
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
  if (temporary_.empty()) {
    if (::close(std::exchange(descriptor_, -1)) != 0) throw system_error("close", path_, errno);
    return;
  }
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
