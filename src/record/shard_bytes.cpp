#include "record/shard_bytes.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/grown.hpp"
#include "core/log.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

// A network file system answers ESTALE where another machine replaced the file: it has to be opened again.
constexpr int kOpenAttempts = 3;
constexpr auto kPauseBeforeAttempt = std::chrono::milliseconds(200);

int open_for_reading(const fs::path& path) {
  for (int attempt = 1;; ++attempt) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) return descriptor;
    if (errno != ESTALE || attempt == kOpenAttempts) throw system_error("open", path, errno);
    std::this_thread::sleep_for(kPauseBeforeAttempt);
  }
}

// Fills bytes from offset. Returns false on ESTALE.
bool read_at(int descriptor, std::uint64_t offset, std::span<std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const auto got = ::pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ESTALE) return false;
    if (got < 0) throw system_error("read", path, errno);
    SSD_VALIDATE(got > 0, "shard '{}': cut off at byte {} while it was in use", path.string(), offset);
    offset += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace

ShardBytes::ShardBytes(fs::path path) : path_(std::move(path)), descriptor_(open_for_reading(path_)) {}

ShardBytes::ShardBytes(ShardBytes&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

ShardBytes& ShardBytes::operator=(ShardBytes&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

ShardBytes::~ShardBytes() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ShardBytes::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  if (read_at(descriptor_, offset, bytes, path_)) return;
  log_warning("shard '{}': stale file handle; opening it again", path_.string());
  for (int attempt = 1; attempt < kOpenAttempts; ++attempt) {
    std::this_thread::sleep_for(kPauseBeforeAttempt);
    const ShardBytes again(path_);
    if (read_at(again.descriptor_, offset, bytes, path_)) return;
  }
  throw system_error("read", path_, ESTALE);
}

std::optional<std::span<const std::byte>> ShardBytes::read_if_whole(std::uint64_t offset, std::size_t count,
                                                                    std::uint32_t crc32,
                                                                    std::vector<std::byte>& buffer) const {
  const std::span bytes(grown(buffer, count), count);
  read(offset, bytes);
  if (ssd::crc32(bytes) != crc32) return std::nullopt;
  return bytes;
}

}  // namespace ssd
