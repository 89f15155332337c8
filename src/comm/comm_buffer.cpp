#include "comm/comm_buffer.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace ssd {
namespace {

class HostBuffer : public CommBuffer {
 public:
  explicit HostBuffer(std::size_t bytes) : bytes_(bytes) {}

  std::byte* data() override { return bytes_.data(); }
  void write(std::size_t offset, std::span<const std::byte> bytes) override {
    SSD_EXPECT(offset + bytes.size() <= bytes_.size());
    std::copy(bytes.begin(), bytes.end(), bytes_.data() + offset);
  }
  void read(std::size_t offset, std::span<std::byte> bytes) override {
    SSD_EXPECT(offset + bytes.size() <= bytes_.size());
    std::copy_n(bytes_.data() + offset, bytes.size(), bytes.data());
  }
  void clear(std::size_t bytes) override {
    SSD_EXPECT(bytes <= bytes_.size());
    std::fill_n(bytes_.data(), bytes, std::byte{});
  }
  void wait() override {}  // finish() waits

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

std::unique_ptr<CommBuffer> make_host_buffer(std::size_t bytes) {
  return std::make_unique<HostBuffer>(bytes);
}

std::size_t free_host_bytes() {
  std::ifstream lines("/proc/meminfo");  // "MemAvailable:   12345678 kB"
  std::string name, unit;
  for (std::size_t kib = 0; lines >> name >> kib; std::getline(lines, unit)) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return std::numeric_limits<std::size_t>::max();
}

}  // namespace ssd
