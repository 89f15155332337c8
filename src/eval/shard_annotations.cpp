#include "eval/shard_annotations.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace ssd {

AnnotationSet annotation_set_of(const ShardSet& shards) {
  AnnotationSet set;
  set.categories = shards.categories();
  std::vector<std::pair<std::uint64_t, Annotation>> ordered;
  for (const auto& record : shards.records()) {
    set.images.push_back({record.image_id, record.file_name, record.width, record.height});
    for (const auto& box : shards.annotations_of(record)) {
      ordered.emplace_back(box.json_order, Annotation{box.id, record.image_id, box.category_id, box.bbox_xywh,
                                                      box.area, box.is_crowd});
    }
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [order, annotation] : ordered) set.annotations.push_back(annotation);
  return set;
}

}  // namespace ssd
