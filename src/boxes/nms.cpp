#include "boxes/nms.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"

namespace ssd {
namespace {

// Boxes of one class, best first, as columns so that one box is compared with many in whole vectors.
struct ClassBoxes {
  std::vector<float> left, top, right, bottom, area;
  std::vector<std::uint8_t> is_suppressed;

  void assign(std::span<const std::size_t> order, std::span<const BoxLtrb> boxes) {
    for (auto* column : {&left, &top, &right, &bottom, &area}) column->resize(order.size());
    is_suppressed.assign(order.size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const BoxLtrb& box = boxes[order[i]];
      left[i] = box[0];
      top[i] = box[1];
      right[i] = box[2];
      bottom[i] = box[3];
      area[i] = area_of(box);
    }
  }

  // The same order of operations as iou(), which exact halves depend on.
  void suppress_after(std::size_t kept, float iou_threshold) {
    const float kept_left = left[kept], kept_top = top[kept], kept_right = right[kept],
                kept_bottom = bottom[kept];
    const float kept_area = area[kept];
    for (std::size_t i = kept + 1; i < left.size(); ++i) {
      const float width = std::max(std::min(kept_right, right[i]) - std::max(kept_left, left[i]), 0.0F);
      const float height = std::max(std::min(kept_bottom, bottom[i]) - std::max(kept_top, top[i]), 0.0F);
      const float common = width * height;
      const float value = common / ((kept_area + area[i]) - common);
      is_suppressed[i] = static_cast<std::uint8_t>(is_suppressed[i] | !(value < iou_threshold));
    }
  }
};

}  // namespace

std::vector<std::size_t> suppress(const NmsCandidates& candidates, const NmsOptions& options) {
  const std::size_t count = candidates.scores.size();
  SSD_EXPECT(candidates.boxes_ltrb.size() == count && candidates.labels.size() == count);
  SSD_EXPECT(options.candidates_per_class >= 0 && options.max_output >= 0);

  // By class, best score first, of equal scores the later candidate.
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (candidates.labels[a] != candidates.labels[b]) return candidates.labels[a] < candidates.labels[b];
    if (candidates.scores[a] != candidates.scores[b]) return candidates.scores[a] > candidates.scores[b];
    return a > b;
  });

  std::vector<std::size_t> kept;
  ClassBoxes boxes;
  for (std::size_t first = 0; first < count;) {
    std::size_t last = first;
    while (last < count && candidates.labels[order[last]] == candidates.labels[order[first]]) ++last;
    const std::size_t used = std::min(last - first, static_cast<std::size_t>(options.candidates_per_class));
    const std::span<const std::size_t> members = std::span(order).subspan(first, used);
    boxes.assign(members, candidates.boxes_ltrb);
    for (std::size_t i = 0; i < used; ++i) {
      if (boxes.is_suppressed[i]) continue;
      kept.push_back(members[i]);
      boxes.suppress_after(i, options.iou_threshold);
    }
    first = last;
  }

  std::stable_sort(kept.begin(), kept.end(), [&](std::size_t a, std::size_t b) {
    return candidates.scores[a] >
           candidates.scores[b];  // stable: classes in order, then the order of suppression
  });
  kept.resize(std::min(kept.size(), static_cast<std::size_t>(options.max_output)));
  return kept;
}

}  // namespace ssd
