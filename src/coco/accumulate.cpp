#include "coco/accumulate.hpp"

#include <algorithm>

#include "coco/category_curves.hpp"
#include "coco/parallel.hpp"
#include "coco/score_sort.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

struct BlockPlace {
  ImageId image_id;
  std::uint32_t detection_count = 0;
  const MatchOutcomes* part = nullptr;
  std::size_t first_detection = 0;
  std::size_t first_bits = 0;
};

// The blocks of all parts by category, then image: the order that decides between equal scores.
class OrderedBlocks {
 public:
  OrderedBlocks(std::span<const MatchOutcomes> parts, std::size_t category_count)
      : starts_(category_count + 1) {
    for (const auto& part : parts) {
      for (const auto& block : part.blocks) ++starts_[block.category_index + 1];
    }
    for (std::size_t k = 0; k < category_count; ++k) starts_[k + 1] += starts_[k];
    places_.resize(starts_.back());
    auto next = starts_;
    for (const auto& part : parts) {
      std::size_t first = 0;
      std::size_t first_bits = 0;
      for (const auto& block : part.blocks) {
        places_[next[block.category_index]++] = {block.image_id, block.detection_count, &part, first,
                                                 first_bits};
        for (const auto end = first + block.detection_count; first < end; ++first) {
          if ((part.states[first] & MatchOutcomes::kHasBits) != 0) first_bits += 2 * part.words_per_mask();
        }
      }
    }
    if (parts.size() < 2) return;  // the blocks of one part are by image
    for (std::size_t k = 0; k < category_count; ++k) {
      const auto blocks = std::span(places_).subspan(starts_[k], starts_[k + 1] - starts_[k]);
      std::sort(blocks.begin(), blocks.end(),
                [](const auto& a, const auto& b) { return a.image_id < b.image_id; });
    }
  }

  std::span<const BlockPlace> of_category(std::size_t k) const {
    return std::span(places_).subspan(starts_[k], starts_[k + 1] - starts_[k]);
  }

 private:
  std::vector<std::size_t> starts_;  // (categories + 1)
  std::vector<BlockPlace> places_;
};

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
  ScoreSorter<RankedDetection>().sort(ranked);
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

  const OrderedBlocks blocks(parts, category_count);
  parallel_for(category_count, threads, [&](std::size_t k) {
    std::vector<RankedDetection> ranked;
    rank_detections(blocks.of_category(k), ranked);
    CategoryCurves(parameters).write(ranked, k, result);
  });
  return result;
}

}  // namespace ssd
