// Bytes that are read by position: a file or a piece of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "core/error.hpp"

namespace ssd {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;

  // Fills the buffer from `offset` on. Throws Error where the source ends before.
  void read(std::uint64_t offset, std::span<std::byte> buffer) const;
  // The same into a vector; nothing is allocated before the range is known to lie within the source.
  std::vector<std::byte> read(std::uint64_t offset, std::uint64_t bytes) const;

 protected:
  virtual void read_within(std::uint64_t offset, std::span<std::byte> buffer) const = 0;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}  // not owned
  std::uint64_t size() const override { return bytes_.size(); }

 protected:
  void read_within(std::uint64_t offset, std::span<std::byte> buffer) const override;

 private:
  std::span<const std::byte> bytes_;
};

// The network file system says that the file was replaced or removed (ESTALE): worth another try by path.
class StaleFileError : public Error {
 public:
  using Error::Error;
};

// A regular file. Throws Error with path and the system's text.
class FileSource final : public ByteSource {
 public:
  explicit FileSource(std::filesystem::path path);
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  std::uint64_t size() const override { return size_; }

 protected:
  void read_within(std::uint64_t offset, std::span<std::byte> buffer) const override;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace ssd
