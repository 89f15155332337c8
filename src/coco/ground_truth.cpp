#include "coco/ground_truth.hpp"

#include <algorithm>
#include <unordered_map>

#include "core/error.hpp"

namespace ssd {
namespace {

// "5, 6" or "1, 2, 3, 4, 5, ... (37 annotations)".
std::string first_few(std::span<const std::int64_t> ids) {
  constexpr std::size_t kShown = 5;
  if (ids.size() <= kShown) return fmt::format("{}", fmt::join(ids, ", "));
  return fmt::format("{}, ... ({} annotations)", fmt::join(ids.first(kShown), ", "), ids.size());
}

}  // namespace

GroundTruth resolve_ground_truth(std::span<const Annotation> annotations) {
  return resolve_ground_truth(annotations, [](const Annotation&) { return true; });
}

GroundTruth resolve_ground_truth(std::span<const Annotation> annotations,
                                 const std::function<bool(const Annotation&)>& is_asked_for) {
  std::unordered_map<std::int64_t, const Annotation*> last_of_id;
  last_of_id.reserve(annotations.size());
  std::vector<const Annotation*> by_image;
  by_image.reserve(annotations.size());
  std::vector<std::int64_t> repeated_ids;
  for (const auto& annotation : annotations) {
    const bool is_new = last_of_id.insert_or_assign(annotation.id, &annotation).second;
    if (!is_new) repeated_ids.push_back(annotation.id);
    if (is_asked_for(annotation)) by_image.push_back(&annotation);
  }
  const auto image_order = [](const auto* a, const auto* b) { return a->image_id < b->image_id; };
  std::stable_sort(by_image.begin(), by_image.end(), image_order);

  GroundTruth result;
  result.boxes.reserve(annotations.size());
  for (const auto* annotation : by_image) result.boxes.push_back(*last_of_id[annotation->id]);
  // A replaced box may have come to another image: bring each to its own, in the order they came.
  std::stable_sort(result.boxes.begin(), result.boxes.end(),
                   [](const auto& a, const auto& b) { return a.image_id < b.image_id; });

  if (!repeated_ids.empty()) {
    result.warnings.push_back(fmt::format(
        "annotation ids used more than once: {}; as in pycocotools only the last annotation of each counts, "
        "in place of the others too, so give every annotation an id of its own",
        first_few(repeated_ids)));
  }
  if (const auto zero = last_of_id.find(0); zero != last_of_id.end()) {
    result.warnings.push_back(fmt::format(
        "an annotation of image {} has id 0; as in pycocotools a match with it does not count, so number "
        "annotations from 1",
        zero->second->image_id.value()));
  }
  return result;
}

std::vector<CategoryId> evaluated_categories(const AnnotationSet& set) {
  std::vector<CategoryId> ids;
  for (const auto& category : set.categories) ids.push_back(category.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace ssd
