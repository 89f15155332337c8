#include "coco/evaluation_scope.hpp"

#include <algorithm>
#include <optional>

#include "coco/id_index.hpp"
#include "coco/unknown_images.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

template <class Record>
auto ids_of(const std::vector<Record>& records) {
  std::vector<decltype(records.front().id)> ids;
  ids.reserve(records.size());
  for (const auto& record : records) ids.push_back(record.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

template <class Id>
std::vector<Id> chosen(const std::vector<Id>& all, std::span<const Id> wanted, const char* what) {
  if (wanted.empty()) return all;
  std::vector<Id> ids(wanted.begin(), wanted.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const auto id : ids) {
    SSD_VALIDATE(std::binary_search(all.begin(), all.end(), id),
                 "evaluation: {} {} is not in the ground truth, which has {}", what, id.value(), all.size());
  }
  return ids;
}

// What becomes of the detections of an image or category.
enum class Fate : std::uint8_t { unknown, other, kept };

// Asked mostly for the same id again and again.
template <class Id>
class Fates {
 public:
  Fates(std::span<const Id> all, std::span<const Id> kept) : all_(all), kept_(kept) {}

  Fate of(Id id) {
    if (id == last_) return fate_;
    last_ = id;
    fate_ = kept_.has(id) ? Fate::kept : all_.has(id) ? Fate::other : Fate::unknown;
    return fate_;
  }

 private:
  IdIndex<Id> all_;
  IdIndex<Id> kept_;
  std::optional<Id> last_;
  Fate fate_ = Fate::unknown;
};

}  // namespace

EvaluationScope evaluation_scope(const AnnotationSet& set, std::span<const ImageId> wanted_images,
                                 std::span<const CategoryId> wanted_categories) {
  return {chosen<ImageId>(ids_of(set.images), wanted_images, "image"),
          chosen<CategoryId>(ids_of(set.categories), wanted_categories, "category")};
}

std::vector<ImageId> share_of(std::span<const ImageId> image_ids, int rank, int world_size) {
  std::vector<ImageId> share;
  for (auto i = static_cast<std::size_t>(rank); i < image_ids.size();
       i += static_cast<std::size_t>(world_size))
    share.push_back(image_ids[i]);
  return share;
}

GroundTruth ground_truth_of(const EvaluationParameters& parameters, const AnnotationSet& set,
                            const EvaluationScope& scope) {
  const IdIndex<ImageId> images(scope.image_ids);
  const IdIndex<CategoryId> categories(scope.category_ids);
  const auto is_asked_for = [&](const Annotation& annotation) {
    return images.has(annotation.image_id) &&
           (!parameters.use_categories || categories.has(annotation.category_id));
  };
  auto truth = resolve_ground_truth(set.annotations, is_asked_for);
  keep_boxes(scope.image_ids, truth.boxes);
  return truth;
}

void keep_boxes(std::span<const ImageId> image_ids, std::vector<Annotation>& boxes) {
  const IdIndex<ImageId> images(image_ids);
  std::erase_if(boxes, [&](const Annotation& box) { return !images.has(box.image_id); });
}

LeftOut keep_detections(const AnnotationSet& set, const EvaluationScope& scope, UnknownImages unknown,
                        std::vector<Detection>& detections) {
  Fates<ImageId> images(ids_of(set.images), scope.image_ids);
  Fates<CategoryId> categories(ids_of(set.categories), scope.category_ids);
  UnknownImageIds unknown_images;
  LeftOut left_out;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < detections.size(); ++i) {
    const auto image = images.of(detections[i].image_id);
    if (image == Fate::unknown) unknown_images.add(detections[i].image_id);
    if (image != Fate::kept) continue;
    const auto category = categories.of(detections[i].category_id);
    if (category == Fate::unknown) ++left_out.unknown_categories;
    if (category != Fate::kept) continue;
    if (kept != i) detections[kept] = detections[i];
    ++kept;
  }
  if (unknown == UnknownImages::refuse) unknown_images.refuse_any(detections.size());
  left_out.unknown_images = unknown_images.detection_count();
  detections.resize(kept);
  return left_out;
}

}  // namespace ssd
