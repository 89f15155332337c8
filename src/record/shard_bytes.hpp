// Bytes of a shard file, read without HDF5. Thread safe once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

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
  // `count` bytes into the buffer, which only grows; nothing where their CRC-32 is another one.
  std::optional<std::span<const std::byte>> read_if_whole(std::uint64_t offset, std::size_t count,
                                                          std::uint32_t crc32,
                                                          std::vector<std::byte>& buffer) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace ssd
