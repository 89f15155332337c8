// One shard as an HDF5 file (FORMAT.md), written whole and read without its pictures. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "core/digest.hpp"
#include "record/shard_data.hpp"

namespace ssd {

// Writes, closes and syncs. Returns the content digest. Throws Error that names the file (disk full, ...).
Digest write_shard(const std::filesystem::path& path, const ShardHeader& header, const ShardData& data,
                   std::span<const std::byte> jpeg_data);

struct ShardOnDisk {
  ShardHeader header;
  ShardData data;
  std::uint64_t jpeg_data_offset = 0;     // of the dataset "jpeg" in the file, in bytes
  std::uint64_t restart_data_offset = 0;  // of the dataset "restart/offset"
  Digest digest;
};

// Throws Error that names the file: another format or version, damage of any kind outside the pictures.
ShardOnDisk read_shard(const std::filesystem::path& path);

}  // namespace ssd
