// Files that exist whole or not at all: written under a temporary name in the same folder, synced, renamed,
// and the folder synced. A crash at any moment leaves the old file or the new one, and perhaps a temporary
// file. Only regular files are replaced: see AtomicFile.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace ssd {

// Temporary files are named ".<name>.tmp.<host>.<pid>"; is_temporary_name recognises any of them.
std::filesystem::path temporary_path_for(const std::filesystem::path& path);
bool is_temporary_name(std::string_view file_name);

// fsync of a file or folder. Throws Error with path and system text.
void sync_path(const std::filesystem::path& path);

// Renames a finished temporary file to its final name: fsync of the file, rename, fsync of the folder.
void rename_durably(const std::filesystem::path& temporary, const std::filesystem::path& path);

// Throws Error where a file could not be written to `path`, before there is anything to write: its folder is
// missing or not writable, or there is something of that name that is a folder or not writable. Makes nothing
// and opens nothing.
void validate_output_path(const std::filesystem::path& path);

// Not thread safe. Every member throws Error (disk full, no permission, ...) with the path and the system's
// text. Destroyed without commit() it removes the temporary file.
//
// A symbolic link stays, and the file that it names is replaced. An existing file's mode stays, and its owner
// and group as far as the system lets it. What is there and no regular file (a device such as /dev/stdout, a
// FIFO) is written to as it is.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void commit();  // after this the file is at its final name, on stable storage

 private:
  std::filesystem::path path_;       // with links followed
  std::filesystem::path temporary_;  // empty: what is there is written to as it is
  int descriptor_ = -1;
};

void write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace ssd
