#include "coco/category_curves.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ssd {
namespace {

constexpr double kSpacingOfOne = std::numeric_limits<double>::epsilon();  // numpy.spacing(1) = 2^-52

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

}  // namespace

CategoryCurves::CategoryCurves(const EvaluationParameters& parameters)
    : parameters_(parameters),
      area_count_(parameters.area_ranges.size()),
      words_(words_per_mask(parameters)),
      needed_(area_count_) {}

void CategoryCurves::write(std::span<const RankedDetection> ranked, std::size_t category,
                           EvaluationResult& result) {
  const auto* truths = &result.ground_truth_counts[category * area_count_];
  for (std::size_t a = 0; a < area_count_; ++a)
    if (truths[a] != 0) needed_[a] = least_true_positives(parameters_.recall_thresholds, truths[a]);
  for (std::size_t m = 0; m < parameters_.max_detections.size(); ++m) {
    take_detections(ranked, static_cast<std::size_t>(parameters_.max_detections[m]));
    for (std::size_t a = 0; a < area_count_; ++a) {
      if (truths[a] == 0) continue;
      for (std::size_t t = 0; t < parameters_.iou_thresholds.size(); ++t) {
        find_true_positives(a, t);
        const auto reached = static_cast<double>(precision_.size()) / static_cast<double>(truths[a]);
        result.recall[result.recall_index(t, category, a, m)] = has_detections_ ? reached : 0;
        write_cell(t, category, a, m, result);
      }
    }
  }
}

// A sort by score of the best few of each image is the sort of all, the others left out.
void CategoryCurves::take_detections(std::span<const RankedDetection> ranked, std::size_t limit) {
  overlapping_.clear();
  false_before_.clear();
  false_count_.assign(area_count_, 0);
  has_detections_ = false;
  for (const auto& detection : ranked) {
    if (detection.rank >= limit) continue;
    if (!has_detections_) first_score_ = detection.score;
    has_detections_ = true;
    if (detection.bits != nullptr) {
      overlapping_.push_back({detection.score, detection.bits});
      false_before_.insert(false_before_.end(), false_count_.begin(), false_count_.end());
    } else {
      for (std::size_t a = 0; a < area_count_; ++a) false_count_[a] += (detection.state >> a) & 1;
    }
  }
}

void CategoryCurves::find_true_positives(std::size_t area, std::size_t threshold) {
  const auto cell = area * parameters_.iou_thresholds.size() + threshold;
  const auto word = cell / 64;
  const auto shift = cell % 64;
  precision_.clear();
  scores_.clear();
  std::size_t true_positives = 0;
  std::size_t false_positives = 0;  // among the overlapping
  for (std::size_t i = 0; i < overlapping_.size(); ++i) {
    const auto* bits = overlapping_[i].bits;
    false_positives += (bits[words_ + word] >> shift) & 1;
    if (((bits[word] >> shift) & 1) == 0) continue;
    ++true_positives;
    const auto tp = static_cast<double>(true_positives);
    const auto fp = static_cast<double>(false_positives + false_before_[i * area_count_ + area]);
    precision_.push_back(tp / (fp + tp + kSpacingOfOne));
    scores_.push_back(overlapping_[i].score);
  }
  for (std::size_t i = precision_.size(); i-- > 1;)
    precision_[i - 1] = std::max(precision_[i - 1], precision_[i]);
}

// Recall 0 is reached by the first detection, whatever it is.
void CategoryCurves::write_cell(std::size_t t, std::size_t category, std::size_t a, std::size_t m,
                                EvaluationResult& result) const {
  const auto& needed = needed_[a];
  for (std::size_t r = 0; r < needed.size(); ++r) {
    double precision = 0;
    double score = 0;
    if (needed[r] == 0 && has_detections_) {
      precision = precision_.empty() ? 0 : precision_.front();
      score = first_score_;
    } else if (needed[r] != 0 && needed[r] <= precision_.size()) {
      precision = precision_[needed[r] - 1];
      score = scores_[needed[r] - 1];
    }
    const auto index = result.precision_index(t, r, category, a, m);
    result.precision[index] = precision;
    result.scores[index] = score;
  }
}

}  // namespace ssd
