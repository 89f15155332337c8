// Decoded pictures kept in memory, so that they are not decoded again in later epochs. Filled by whoever
// decodes a picture as long as there is room; nothing is ever thrown out, so that what is found stays. All
// members may be called by any thread at any time; none waits for another.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "image/rgb_image.hpp"

namespace ssd {

class DecodedCache {
 public:
  // record_count: of the set. most_bytes: of all pixels together.
  DecodedCache(std::size_t record_count, std::uint64_t most_bytes);
  ~DecodedCache();
  DecodedCache(const DecodedCache&) = delete;
  DecodedCache& operator=(const DecodedCache&) = delete;

  // The upright picture of a record, or null. Counted.
  const RgbImage* find(std::uint32_t record);
  // Whether a picture of this size would still be taken.
  bool has_room(const PictureSize& size) const;
  // Copies an upright picture, unless it is there already or there is no room left.
  void add(std::uint32_t record, const RgbView& picture);

  struct Counts {
    std::uint64_t lookups = 0;
    std::uint64_t hits = 0;
  };
  // Since the last call.
  Counts take_counts();
  std::uint64_t used_bytes() const { return used_bytes_; }

 private:
  std::vector<std::atomic<const RgbImage*>> pictures_;  // of each record
  std::uint64_t most_bytes_;
  std::atomic<std::uint64_t> used_bytes_ = 0;
  std::atomic<std::uint64_t> lookups_ = 0;
  std::atomic<std::uint64_t> hits_ = 0;
};

}  // namespace ssd
