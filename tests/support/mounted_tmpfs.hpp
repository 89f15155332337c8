// A small file system of a test's own, for disks that are full or cannot be written; unmounted at the end.
#pragma once

#include <sys/mount.h>

#include <filesystem>
#include <utility>

namespace ssd {

class MountedTmpfs {
 public:
  explicit MountedTmpfs(std::filesystem::path path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
  }
  ~MountedTmpfs() { ::umount2(path_.c_str(), MNT_DETACH); }
  MountedTmpfs(const MountedTmpfs&) = delete;
  MountedTmpfs& operator=(const MountedTmpfs&) = delete;

  // Mounts it, or with MS_REMOUNT changes it. options: "size=8m". False, with errno, where this process may
  // not, or the file system is busy.
  bool set(unsigned long flags, const char* options) {
    return ::mount("tmpfs", path_.c_str(), "tmpfs", flags, options) == 0;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ssd
