// Reads a zip archive of stored (uncompressed) entries, zip64 included, by its central directory. Strict: an
// archive that is malformed in any way met here is refused as a whole, so that two readers never see
// different contents in it. Throws Error; the text does not name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/byte_source.hpp"

namespace ssd {

class ZipReader {
 public:
  struct Entry {
    std::uint64_t header_offset = 0;  // of the local header
    std::uint64_t data_offset = 0;
    std::uint64_t bytes = 0;
    std::uint32_t crc32 = 0;
  };

  // Reads and checks the directory and all local headers. The source must outlive the reader.
  explicit ZipReader(const ByteSource& source);

  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;  // null where there is none

  // The entry's bytes, their CRC-32 checked. Throws Error where there is no such entry.
  std::vector<std::byte> read(std::string_view name) const;

 private:
  void read_directory(std::uint64_t count, std::uint64_t offset, std::uint64_t end);
  void check_layout(std::uint64_t directory_offset);

  const ByteSource& source_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace ssd
