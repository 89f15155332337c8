// A lock on a folder's set of one split, so that two runs do not write it at once: on this machine, and on
// others where the file system locks across machines. It ends with the process, however that ends.
#pragma once

#include <filesystem>
#include <string>

namespace ssd {

class WriterLock {
 public:
  // Makes the file and locks it. Throws Error where another process holds the lock, with its id and host;
  // what: what it writes. A file system without locks is a warning.
  WriterLock(std::filesystem::path path, const std::string& what);
  ~WriterLock();  // removes the file
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  bool try_lock(const std::string& what);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace ssd
