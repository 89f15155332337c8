#include "coco/accumulate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/error.hpp"

namespace ssd {
namespace {

constexpr double kSpacingOfOne = std::numeric_limits<double>::epsilon();  // numpy.spacing(1) = 2^-52

struct BlockPlace {
  std::uint32_t category_index;
  ImageId image_id;
  const MatchOutcomes* part;
  std::size_t first_detection;
  std::size_t detection_count;
};

// The blocks of all parts by category, then image: the order that decides between equal scores.
std::vector<BlockPlace> ordered_blocks(std::span<const MatchOutcomes> parts) {
  std::vector<BlockPlace> places;
  for (const auto& part : parts) {
    std::size_t first = 0;
    for (const auto& block : part.blocks) {
      places.push_back({block.category_index, block.image_id, &part, first, block.detection_count});
      first += block.detection_count;
    }
  }
  std::sort(places.begin(), places.end(), [](const BlockPlace& a, const BlockPlace& b) {
    return std::tie(a.category_index, a.image_id) < std::tie(b.category_index, b.image_id);
  });
  return places;
}

struct RankedDetection {
  double score;
  std::size_t rank;           // within its image and category
  const std::uint64_t* bits;  // as in MatchOutcomes
};

std::vector<RankedDetection> ranked_detections(std::span<const BlockPlace> blocks) {
  std::vector<RankedDetection> ranked;
  for (const auto& block : blocks) {
    const auto words = 2 * block.part->words_per_plane();
    for (std::size_t i = 0; i < block.detection_count; ++i) {
      const auto detection = block.first_detection + i;
      ranked.push_back({block.part->scores[detection], i, block.part->bits.data() + detection * words});
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const RankedDetection& a, const RankedDetection& b) { return a.score > b.score; });
  return ranked;
}

// For each recall threshold the least number of true positives that reaches it. Exact: the quotients are
// those that numpy.searchsorted compares with.
std::vector<std::size_t> least_true_positives(const std::vector<double>& recall_thresholds,
                                              std::int64_t truths) {
  const auto reaches = [truths](std::size_t count, double threshold) {
    return static_cast<double>(count) / static_cast<double>(truths) >= threshold;
  };
  std::vector<std::size_t> counts;
  std::size_t count = 0;
  for (const double threshold : recall_thresholds) {  // ascending, so count only grows
    const double guess = std::floor(threshold * static_cast<double>(truths)) - 1;
    if (guess > static_cast<double>(count)) count = static_cast<std::size_t>(guess);
    while (!reaches(count, threshold)) ++count;
    counts.push_back(count);
  }
  return counts;
}

// Writes the cells of one category.
class CategoryAccumulator {
 public:
  CategoryAccumulator(EvaluationResult& result, std::size_t category, std::vector<RankedDetection> ranked)
      : result_(result), category_(category), ranked_(std::move(ranked)) {}

  void run() {
    const auto& parameters = result_.parameters;
    const auto area_count = parameters.area_ranges.size();
    for (std::size_t m = 0; m < parameters.max_detections.size(); ++m) {
      take_detections(static_cast<std::size_t>(parameters.max_detections[m]));
      for (std::size_t a = 0; a < area_count; ++a) {
        const auto truths = result_.ground_truth_counts[category_ * area_count + a];
        if (truths == 0) continue;
        const auto needed = least_true_positives(parameters.recall_thresholds, truths);
        for (std::size_t t = 0; t < parameters.iou_thresholds.size(); ++t) {
          find_true_positives(a * parameters.iou_thresholds.size() + t);
          const auto reached = static_cast<double>(precision_.size()) / static_cast<double>(truths);
          result_.recall[result_.recall_index(t, category_, a, m)] = selected_.empty() ? 0 : reached;
          write_curve(needed, t, a, m);
        }
      }
    }
  }

 private:
  // A sort by score of the best few of each image is the sort of all, the others left out.
  void take_detections(std::size_t limit) {
    selected_.clear();
    for (const auto& detection : ranked_) {
      if (detection.rank < limit) selected_.push_back(detection);
    }
  }

  // At each true positive of the cell: its place, and the greatest precision there or at a higher recall.
  void find_true_positives(std::size_t cell) {
    const auto area_threshold_count =
        result_.parameters.area_ranges.size() * result_.parameters.iou_thresholds.size();
    const auto words = (area_threshold_count + 63) / 64;
    const auto word = cell / 64;
    const auto shift = cell % 64;
    places_.clear();
    precision_.clear();
    std::size_t true_positives = 0;
    std::size_t false_positives = 0;
    for (std::size_t i = 0; i < selected_.size(); ++i) {
      const auto* bits = selected_[i].bits;
      false_positives += (bits[words + word] >> shift) & 1;
      if (((bits[word] >> shift) & 1) == 0) continue;
      ++true_positives;
      const auto tp = static_cast<double>(true_positives);
      const auto fp = static_cast<double>(false_positives);
      places_.push_back(i);
      precision_.push_back(tp / (fp + tp + kSpacingOfOne));
    }
    for (std::size_t i = precision_.size(); i-- > 1;)
      precision_[i - 1] = std::max(precision_[i - 1], precision_[i]);
  }

  // Between true positives precision only falls, so the envelope is needed at them alone; recall 0 is reached
  // by the first detection, whatever it is.
  void write_curve(const std::vector<std::size_t>& needed, std::size_t t, std::size_t a, std::size_t m) {
    for (std::size_t r = 0; r < needed.size(); ++r) {
      const auto index = result_.precision_index(t, r, category_, a, m);
      result_.precision[index] = 0;
      result_.scores[index] = 0;
      if (needed[r] > precision_.size() || selected_.empty()) continue;
      if (needed[r] == 0) {
        result_.precision[index] = precision_.empty() ? 0 : precision_.front();
        result_.scores[index] = selected_.front().score;
      } else {
        result_.precision[index] = precision_[needed[r] - 1];
        result_.scores[index] = selected_[places_[needed[r] - 1]].score;
      }
    }
  }

  EvaluationResult& result_;
  std::size_t category_;
  std::vector<RankedDetection> ranked_;    // highest score first
  std::vector<RankedDetection> selected_;  // of them, those within the limit of detections
  std::vector<std::size_t> places_;        // of the true positives in selected_
  std::vector<double> precision_;          // at them
};

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
                            std::span<const MatchOutcomes> parts) {
  parameters.validate();
  EvaluationResult result;
  result.parameters = parameters;
  result.category_ids.assign(category_ids.begin(), category_ids.end());
  check_parts(result, parts);

  const auto cells = category_ids.size() * parameters.area_ranges.size() * parameters.max_detections.size();
  const auto recall_cells = parameters.iou_thresholds.size() * cells;
  result.recall.assign(recall_cells, -1.0);
  result.precision.assign(recall_cells * parameters.recall_thresholds.size(), -1.0);
  result.scores.assign(result.precision.size(), -1.0);
  result.ground_truth_counts.assign(category_ids.size() * parameters.area_ranges.size(), 0);
  for (const auto& part : parts) {
    result.image_count += part.image_ids.size();
    result.unknown_category_count += part.unknown_category_count;
    for (std::size_t i = 0; i < part.ground_truth_counts.size(); ++i) {
      result.ground_truth_counts[i] += part.ground_truth_counts[i];
    }
  }

  const auto blocks = ordered_blocks(parts);
  auto begin = blocks.begin();
  for (std::size_t k = 0; k < category_ids.size(); ++k) {
    const auto end =
        std::find_if(begin, blocks.end(), [k](const auto& block) { return block.category_index != k; });
    CategoryAccumulator(result, k, ranked_detections({begin, end})).run();
    begin = end;
  }
  return result;
}

}  // namespace ssd
