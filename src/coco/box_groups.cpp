#include "coco/box_groups.hpp"

#include <algorithm>

namespace ssd {

BoxGroups::BoxGroups(std::span<const Place> places, std::size_t image_count) : starts_(image_count + 1) {
  const auto is_in = [](const Place& place) { return place.image != kLeftOut && place.category != kLeftOut; };
  // Counting sort. First starts_[i + 1] counts the boxes of image i, then it is where they go next.
  for (const auto& place : places) {
    if (is_in(place)) ++starts_[place.image + 1];
  }
  std::size_t start = 0;
  for (std::size_t i = 1; i < starts_.size(); ++i) {
    const auto count = starts_[i];
    starts_[i] = start;
    start += count;
  }
  boxes_.resize(start);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (is_in(places[i]))
      boxes_[starts_[places[i].image + 1]++] = {places[i].category, static_cast<std::uint32_t>(i)};
  }
}

std::span<const GroupedBox> CategorySorter::sorted(std::span<const GroupedBox> boxes) {
  present_.clear();
  for (const auto& box : boxes) {
    if (places_[box.category]++ == 0) present_.push_back(box.category);
  }
  std::sort(present_.begin(), present_.end());
  std::uint32_t place = 0;
  for (const auto category : present_) {
    const auto count = places_[category];
    places_[category] = place;
    place += count;
  }
  sorted_.resize(boxes.size());
  for (const auto& box : boxes) sorted_[places_[box.category]++] = box;
  for (const auto category : present_) places_[category] = 0;
  return sorted_;
}

}  // namespace ssd
