#include "coco/accumulate.hpp"

#include <algorithm>
#include <tuple>

#include "coco/category_curves.hpp"
#include "coco/parallel.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

struct BlockPlace {
  std::uint32_t category_index = 0;
  std::uint32_t detection_count = 0;
  ImageId image_id;
  const MatchOutcomes* part = nullptr;
  std::size_t first_detection = 0;
  std::size_t first_bits = 0;
};

// The blocks of all parts by category, then image: the order that decides between equal scores.
std::vector<BlockPlace> ordered_blocks(std::span<const MatchOutcomes> parts) {
  std::vector<BlockPlace> places;
  for (const auto& part : parts) {
    std::size_t first = 0;
    std::size_t first_bits = 0;
    for (const auto& block : part.blocks) {
      places.push_back({block.category_index, block.detection_count, block.image_id, &part, first, first_bits});
      for (std::size_t i = 0; i < block.detection_count; ++i) {
        if ((part.states[first + i] & MatchOutcomes::kHasBits) != 0) first_bits += 2 * part.words_per_mask();
      }
      first += block.detection_count;
    }
  }
  std::sort(places.begin(), places.end(), [](const BlockPlace& a, const BlockPlace& b) {
    return std::tie(a.category_index, a.image_id) < std::tie(b.category_index, b.image_id);
  });
  return places;
}

void rank_detections(std::span<const BlockPlace> blocks, std::vector<RankedDetection>& ranked) {
  ranked.clear();
  for (const auto& block : blocks) {
    const auto& part = *block.part;
    const auto* bits = part.bits.data() + block.first_bits;
    for (std::uint32_t i = 0; i < block.detection_count; ++i) {
      const auto state = part.states[block.first_detection + i];
      const bool has_bits = (state & MatchOutcomes::kHasBits) != 0;
      ranked.push_back({part.scores[block.first_detection + i], has_bits ? bits : nullptr, i, state});
      if (has_bits) bits += 2 * part.words_per_mask();
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const RankedDetection& a, const RankedDetection& b) { return a.score > b.score; });
}

void check_parts(const EvaluationResult& result, std::span<const MatchOutcomes> parts) {
  const auto& parameters = result.parameters;
  std::vector<ImageId> images;
  for (const auto& part : parts) {
    SSD_VALIDATE(part.category_count == result.category_ids.size() &&
                     part.area_count == parameters.area_ranges.size() &&
                     part.threshold_count == parameters.iou_thresholds.size() &&
                     part.detection_limit == static_cast<std::size_t>(parameters.max_detections.back()),
                 "evaluation: the parts were matched with other categories or parameters");
    images.insert(images.end(), part.image_ids.begin(), part.image_ids.end());
  }
  std::sort(images.begin(), images.end());
  const auto twice = std::adjacent_find(images.begin(), images.end());
  SSD_VALIDATE(twice == images.end(), "evaluation: image {} was matched by two ranks", twice->value());
}

}  // namespace

EvaluationResult accumulate(const EvaluationParameters& parameters, std::span<const CategoryId> category_ids,
                            std::span<const MatchOutcomes> parts, int threads) {
  parameters.validate();
  EvaluationResult result;
  result.parameters = parameters;
  result.category_ids.assign(category_ids.begin(), category_ids.end());
  if (!parameters.use_categories) result.category_ids = {CategoryId(-1)};
  check_parts(result, parts);

  const auto category_count = result.category_ids.size();
  const auto cells = category_count * parameters.area_ranges.size() * parameters.max_detections.size();
  const auto recall_cells = parameters.iou_thresholds.size() * cells;
  result.recall.assign(recall_cells, -1.0);
  result.precision.assign(recall_cells * parameters.recall_thresholds.size(), -1.0);
  result.scores.assign(result.precision.size(), -1.0);
  result.ground_truth_counts.assign(category_count * parameters.area_ranges.size(), 0);
  for (const auto& part : parts) {
    result.image_count += part.image_ids.size();
    result.unknown_category_count += part.unknown_category_count;
    for (std::size_t i = 0; i < part.ground_truth_counts.size(); ++i) {
      result.ground_truth_counts[i] += part.ground_truth_counts[i];
    }
  }

  const auto blocks = ordered_blocks(parts);
  parallel_for(category_count, threads, [&](std::size_t k) {
    const auto by_category = [](const BlockPlace& block, std::size_t category) {
      return block.category_index < category;
    };
    const auto begin = std::lower_bound(blocks.begin(), blocks.end(), k, by_category);
    const auto end = std::lower_bound(begin, blocks.end(), k + 1, by_category);
    std::vector<RankedDetection> ranked;
    rank_detections({begin, end}, ranked);
    CategoryCurves(parameters).write(ranked, k, result);
  });
  return result;
}

}  // namespace ssd
