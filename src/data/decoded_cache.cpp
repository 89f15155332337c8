#include "data/decoded_cache.hpp"

#include <algorithm>
#include <memory>

#include "core/error.hpp"

namespace ssd {
namespace {

std::uint64_t bytes_of(const PictureSize& size) {
  return std::uint64_t{3} * static_cast<std::uint64_t>(size.width) * static_cast<std::uint64_t>(size.height);
}

}  // namespace

DecodedCache::DecodedCache(std::size_t record_count, std::uint64_t most_bytes)
    : pictures_(record_count), most_bytes_(most_bytes) {}

DecodedCache::~DecodedCache() {
  for (const auto& picture : pictures_) delete picture.load();
}

const RgbImage* DecodedCache::find(std::uint32_t record) {
  SSD_EXPECT(record < pictures_.size());
  const RgbImage* picture = pictures_[record].load(std::memory_order_acquire);
  lookups_.fetch_add(1, std::memory_order_relaxed);
  if (picture != nullptr) hits_.fetch_add(1, std::memory_order_relaxed);
  return picture;
}

bool DecodedCache::has_room(const PictureSize& size) const {
  return used_bytes_ + bytes_of(size) <= most_bytes_;
}

void DecodedCache::add(std::uint32_t record, const RgbView& picture) {
  SSD_EXPECT(record < pictures_.size());
  const std::uint64_t bytes = bytes_of({picture.width, picture.height});
  if (used_bytes_.fetch_add(bytes) + bytes > most_bytes_) {
    used_bytes_ -= bytes;
    return;
  }
  auto copy = std::make_unique<RgbImage>();
  copy->width = picture.width;
  copy->height = picture.height;
  copy->pixels.reserve(bytes);
  const auto row_bytes = static_cast<std::size_t>(picture.width) * 3;
  for (std::size_t row = 0; row < static_cast<std::size_t>(picture.height); ++row) {
    const std::uint8_t* from = picture.pixels + row * picture.row_bytes;
    copy->pixels.insert(copy->pixels.end(), from, from + row_bytes);
  }
  const RgbImage* nothing = nullptr;
  if (pictures_[record].compare_exchange_strong(nothing, copy.get(), std::memory_order_acq_rel)) {
    (void)copy.release();
  } else {  // another thread was faster with the same record
    used_bytes_ -= bytes;
  }
}

DecodedCache::Counts DecodedCache::take_counts() {
  return {lookups_.exchange(0), hits_.exchange(0)};
}

}  // namespace ssd
