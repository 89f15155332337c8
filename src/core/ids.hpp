// Ids that must not mix. ImageId and CategoryId are the numbers of a COCO JSON; Label is the index of a class
// in the network's output (0 = background). The only way from a category to a label is the order of the set's
// category list.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace ssd {

template <class Tag, class Value>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(Value value) : value_(value) {}
  constexpr Value value() const { return value_; }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;

 private:
  Value value_{};
};

using ImageId = Id<struct ImageIdTag, std::int64_t>;
using CategoryId = Id<struct CategoryIdTag, std::int64_t>;
using Label = Id<struct LabelTag, std::int32_t>;

}  // namespace ssd

template <class Tag, class Value>
struct std::hash<ssd::Id<Tag, Value>> {
  std::size_t operator()(const ssd::Id<Tag, Value>& id) const noexcept {
    return std::hash<Value>{}(id.value());
  }
};
