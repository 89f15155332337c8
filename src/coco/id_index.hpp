// From an id to its place in a list of ids: a small hash table. Const members are thread safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ssd {

template <class Id>
class IdIndex {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  // Of an id that is there twice the first place counts.
  explicit IdIndex(std::span<const Id> ids)
      : slots_(std::bit_ceil(2 * ids.size() + 2)), shift_(64 - std::countr_zero(slots_.size())) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      auto& slot = slots_[slot_of(ids[i])];
      if (slot.place == kNone) slot = {ids[i], static_cast<std::uint32_t>(i)};
    }
  }

  std::uint32_t place_of(Id id) const { return slots_[slot_of(id)].place; }
  bool has(Id id) const { return place_of(id) != kNone; }

 private:
  struct Slot {
    Id id{};
    std::uint32_t place = kNone;
  };

  // Of the id, or the free one where it belongs; half of all slots are free.
  std::size_t slot_of(Id id) const {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio (Knuth, TAOCP 6.4)
    std::size_t at = (static_cast<std::uint64_t>(id.value()) * kGolden) >> shift_;
    while (slots_[at].place != kNone && slots_[at].id != id) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  std::vector<Slot> slots_;
  int shift_;
};

}  // namespace ssd
