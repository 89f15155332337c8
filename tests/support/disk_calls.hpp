// The calls of this process that reach the disk, for a test that is built with disk_calls.cpp: its own write,
// fsync, rename and unlink stand in front of the system's, write down those on the files of one folder, and
// spoil one of them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace ssd::test {

enum class Spoil {
  fail,  // with EIO
  fail_as_invalid,
  kill,  // SIGKILL before the call
  flip   // a write: its first byte is changed
};

// One at a time. Any thread may make the calls.
class DiskCalls {
 public:
  explicit DiskCalls(const std::filesystem::path& folder);  // from here to the object's end
  ~DiskCalls();
  DiskCalls(const DiskCalls&) = delete;
  DiskCalls& operator=(const DiskCalls&) = delete;

  // So far, as "write NAME", "fsync NAME", "rename FROM TO", "unlink NAME", "forget NAME" (posix_fadvise).
  // Writes to the same file one after the other are one line; the folder itself is "."; of a temporary name
  // what follows ".tmp" is left out.
  std::vector<std::string> lines() const;

  void spoil(const std::string& line, Spoil how);    // the first call with this line
  void spoil_number(std::size_t number, Spoil how);  // the call of this line, counted from 0
};

}  // namespace ssd::test
