#include "coco/unknown_images.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace ssd {

void UnknownImageIds::add(ImageId id) {
  constexpr std::size_t kMostShown = 5;
  ++detection_count_;
  if (shown_.size() < kMostShown && std::find(shown_.begin(), shown_.end(), id) == shown_.end())
    shown_.push_back(id);
}

void UnknownImageIds::refuse_any(std::size_t all_detections) const {
  if (detection_count_ == 0) return;
  std::vector<std::int64_t> ids;
  for (const auto id : shown_) ids.push_back(id.value());
  throw Error(
      fmt::format("{} of {} detections belong to images that are not in the ground truth (ids {}); "
                  "do both come from the same set?",
                  detection_count_, all_detections, fmt::join(ids, ", ")));
}

}  // namespace ssd
