// Writes a zip archive of stored entries to a sink, in one pass and in the order of the calls: CRC-32 and
// size in front of the data, data aligned to 64 bytes, zip64 sizes throughout (so that small and large files
// take the same path). Nothing is written by the destructor: an archive that was not finished has no
// directory and is no archive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

namespace ssd {

class ZipWriter {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;  // what it throws goes through

  explicit ZipWriter(Sink sink) : sink_(std::move(sink)) {}

  void add(std::string_view name, std::span<const std::byte> data);
  void add(std::string_view name, std::string_view text);
  void finish();  // the directory; nothing can be added afterwards

 private:
  void write(std::string_view bytes);
  void append_to_directory(std::string_view name, std::uint64_t bytes, std::uint32_t crc32);

  Sink sink_;
  std::uint64_t position_ = 0;
  std::uint64_t count_ = 0;
  std::string directory_;
  std::unordered_set<std::string> names_;
  bool finished_ = false;
};

}  // namespace ssd
