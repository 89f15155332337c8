// Memory of the kind that a gradient communicator averages: the host's, or a GPU's. For programs without
// tensors.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace ssd {

// Not thread safe. Offsets and lengths in bytes, within the size it was made with.
class CommBuffer {
 public:
  virtual ~CommBuffer() = default;
  virtual std::byte* data() = 0;  // for the communicator alone: it may be the GPU's
  virtual void write(std::size_t offset, std::span<const std::byte> bytes) = 0;
  virtual void read(std::size_t offset, std::span<std::byte> bytes) = 0;
  virtual void clear(std::size_t bytes) = 0;  // the first so many to 0
  virtual void wait() = 0;                    // until the averages of the last finish() are there
};

std::unique_ptr<CommBuffer> make_host_buffer(std::size_t bytes);

// What the host's programs may still take without swapping (MemAvailable of /proc/meminfo); the largest
// number where it does not say.
std::size_t free_host_bytes();

}  // namespace ssd
