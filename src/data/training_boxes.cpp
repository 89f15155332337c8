#include "data/training_boxes.hpp"

#include <algorithm>

namespace ssd {
namespace {

float part(double position, int pixels) {
  return static_cast<float>(std::clamp(position / pixels, 0.0, 1.0));
}

}  // namespace

void training_boxes(const ShardSet& set, const Record& record, CrowdBoxes crowd, SampleBoxes& boxes) {
  boxes.ltrb.clear();
  boxes.labels.clear();
  for (const RecordAnnotation& annotation : set.annotations_of(record)) {
    if (!annotation.is_trainable || (annotation.is_crowd && crowd == CrowdBoxes::leave_out)) continue;
    const auto [left, top, width, height] = annotation.bbox_xywh;
    const BoxLtrb box = {part(left, record.width), part(top, record.height), part(left + width, record.width),
                         part(top + height, record.height)};
    if (!(box[0] < box[2] && box[1] < box[3])) continue;
    boxes.ltrb.push_back(box);
    boxes.labels.push_back(annotation.label.value());
  }
}

std::vector<std::uint32_t> usable_records(const ShardSet& set, CrowdBoxes crowd) {
  std::vector<std::uint32_t> usable;
  SampleBoxes boxes;
  for (std::size_t i = 0; i < set.records().size(); ++i) {
    const Record& record = set.records()[i];
    if (record.is_bad) continue;
    training_boxes(set, record, crowd, boxes);
    if (!boxes.ltrb.empty()) usable.push_back(static_cast<std::uint32_t>(i));
  }
  return usable;
}

}  // namespace ssd
