#pragma once

#include <fstream>
#include <stdexcept>
#include <string>

namespace ssd {

// Memory of this process alone, in KiB: the page cache does not count.
inline long own_memory_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stol(line.substr(8));
  }
  throw std::runtime_error("no RssAnon in /proc/self/status");
}

}  // namespace ssd
