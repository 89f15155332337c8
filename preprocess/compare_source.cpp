#include "preprocess/compare_source.hpp"

#include <fmt/ranges.h>

namespace ssd {
namespace {

template <class Value>
std::string difference(const char* what, const Value& found, const Value& expected) {
  if (found == expected) return {};
  return fmt::format("{} {}, in the source {}", what, found, expected);
}

std::string compare_annotation(const ShardData& shard, std::size_t row, const Annotation& expected,
                               std::uint64_t json_order) {
  const auto flags = shard.annotation_flags[row];
  for (auto& text :
       {difference("id", shard.annotation_ids[row], expected.id),
        difference("place", shard.annotation_json_orders[row], json_order),
        difference("category_id", shard.annotation_category_ids[row], expected.category_id.value()),
        difference("bbox", shard.bboxes_xywh[row], expected.bbox_xywh),
        difference("area", shard.areas[row], expected.area),
        difference("crowd", (flags & kAnnotationCrowd) != 0, expected.is_crowd)}) {
    if (!text.empty()) return fmt::format("annotation {}: {}", expected.id, text);
  }
  return {};
}

}  // namespace

std::string compare_with_source(const ShardData& shard, std::size_t i, const SourceSet& source) {
  const auto order = shard.image_json_orders[i];
  if (order >= source.set.images.size())
    return fmt::format("image {}: the source has no image at place {}", shard.image_ids[i], order);
  const auto& image = source.set.images[order];
  const auto& annotations = source.annotations_of[order];
  const auto first = shard.first_annotations[i];
  const bool has_size = image.width > 0 && image.height > 0;
  for (auto& text :
       {difference("id", shard.image_ids[i], image.id.value()),
        difference("file_name", shard.file_names.at(i), image.file_name),
        difference("width", shard.widths[i], has_size ? image.width : shard.widths[i]),
        difference("height", shard.heights[i], has_size ? image.height : shard.heights[i]),
        difference("annotations", std::size_t{shard.first_annotations[i + 1] - first}, annotations.size())}) {
    if (!text.empty()) return fmt::format("image {}: {}", image.id.value(), text);
  }
  for (std::size_t k = 0; k < annotations.size(); ++k) {
    auto text = compare_annotation(shard, first + k, source.set.annotations[annotations[k]], annotations[k]);
    if (!text.empty()) return fmt::format("image {}: {}", image.id.value(), text);
  }
  return {};
}

}  // namespace ssd
