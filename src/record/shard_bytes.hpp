// Bytes of a shard file, read without HDF5. Thread safe once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace ssd {

class ShardBytes {
 public:
  // Throws Error that names the file, as every member does.
  explicit ShardBytes(std::filesystem::path path);
  ShardBytes(ShardBytes&& other) noexcept;
  ShardBytes& operator=(ShardBytes&& other) noexcept;
  ~ShardBytes();

  const std::filesystem::path& path() const { return path_; }

  // Fills bytes from this place of the file. A stale handle of a network file system is opened again.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace ssd
