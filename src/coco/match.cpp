#include "coco/match.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"

namespace ssd {
namespace {

constexpr double kLargestStartIou = 1 - 1e-10;  // pycocotools: a threshold of 1 can still be met

double area_of(const BoxXywh& box) {
  return box[2] * box[3];
}

// Intersection over union, or over the detection's own area where the ground truth is a crowd (maskApi.c,
// bbIou). The order of the operations decides the last bit.
double iou(const BoxXywh& detection, const BoxXywh& truth, bool is_crowd) {
  const double width =
      std::fmin(detection[2] + detection[0], truth[2] + truth[0]) - std::fmax(detection[0], truth[0]);
  if (width <= 0) return 0;
  const double height =
      std::fmin(detection[3] + detection[1], truth[3] + truth[1]) - std::fmax(detection[1], truth[1]);
  if (height <= 0) return 0;
  const double intersection = width * height;
  const double both = is_crowd ? area_of(detection) : area_of(detection) + area_of(truth) - intersection;
  return intersection / both;
}

template <class T>
std::uint32_t index_in(std::span<const T> sorted, T value) {
  const auto found = std::lower_bound(sorted.begin(), sorted.end(), value);
  if (found == sorted.end() || *found != value) return std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(found - sorted.begin());
}
constexpr std::uint32_t kNotFound = std::numeric_limits<std::uint32_t>::max();

// Indices of boxes, grouped by (image, category) in ascending order, in the given order within a group.
struct Grouping {
  struct Entry {
    std::uint32_t image;
    std::uint32_t category;
    std::uint32_t index;
  };
  std::vector<Entry> entries;

  void sort(std::size_t image_count, std::size_t category_count) {
    counting_sort(category_count, [](const Entry& entry) { return entry.category; });
    counting_sort(image_count, [](const Entry& entry) { return entry.image; });
  }

 private:
  template <class Key>
  void counting_sort(std::size_t key_count, Key key) {  // stable
    std::vector<std::size_t> places(key_count + 1);
    for (const auto& entry : entries) ++places[key(entry) + 1];
    std::partial_sum(places.begin(), places.end(), places.begin());
    std::vector<Entry> sorted(entries.size());
    for (const auto& entry : entries) sorted[places[key(entry)]++] = entry;
    entries.swap(sorted);
  }
};

// Matches the boxes of one image and category after another; its buffers are used again for each.
class BlockMatcher {
 public:
  BlockMatcher(const EvaluationParameters& parameters, const MatchInput& input, MatchOutcomes& outcomes)
      : parameters_(parameters), input_(input), outcomes_(outcomes) {}

  void match(std::span<const Grouping::Entry> truths, std::span<const Grouping::Entry> detections) {
    const auto& first = truths.empty() ? detections.front() : truths.front();
    take_truths(truths);
    count_truths(first.category);
    if (detections.empty()) return;
    take_detections(detections);
    compute_ious();
    for (std::size_t area = 0; area < parameters_.area_ranges.size(); ++area) match_in_area(area);
    append_block(outcomes_.image_ids[first.image], first.category);
  }

 private:
  void take_truths(std::span<const Grouping::Entry> entries) {
    truths_.clear();
    for (const auto& entry : entries) truths_.push_back(&input_.ground_truth[entry.index]);
  }

  void take_detections(std::span<const Grouping::Entry> entries) {
    detections_.clear();
    for (const auto& entry : entries) detections_.push_back(&input_.detections[entry.index]);
    const auto by_score = [](const Detection* a, const Detection* b) { return a->score > b->score; };
    std::stable_sort(detections_.begin(), detections_.end(), by_score);  // equal scores keep their order
    const auto limit = static_cast<std::size_t>(parameters_.max_detections.back());
    if (detections_.size() > limit) detections_.resize(limit);
    planes_.assign(detections_.size() * 2 * outcomes_.words_per_plane(), 0);
  }

  bool ignored(const Annotation& truth, const AreaRange& range) const {
    return truth.is_crowd || truth.area < range.low || truth.area > range.high;
  }

  void count_truths(std::size_t category) {
    const auto& ranges = parameters_.area_ranges;
    for (std::size_t area = 0; area < ranges.size(); ++area) {
      auto& count = outcomes_.ground_truth_counts[category * ranges.size() + area];
      for (const auto* truth : truths_) count += ignored(*truth, ranges[area]) ? 0 : 1;
    }
  }

  void compute_ious() {
    ious_.resize(detections_.size() * truths_.size());
    largest_iou_.assign(detections_.size(), -1.0);
    for (std::size_t d = 0; d < detections_.size(); ++d) {
      for (std::size_t g = 0; g < truths_.size(); ++g) {
        const double value = iou(detections_[d]->bbox_xywh, truths_[g]->bbox_xywh, truths_[g]->is_crowd);
        ious_[d * truths_.size() + g] = value;
        // Overflowing boxes give NaN, which pycocotools lets match everything: it must not be passed over.
        const double bound = std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
        largest_iou_[d] = std::max(largest_iou_[d], bound);
      }
    }
  }

  // Kept parallel to COCOeval.evaluateImg.
  void match_in_area(std::size_t area) {
    const auto& range = parameters_.area_ranges[area];
    truth_order_.resize(truths_.size());
    std::iota(truth_order_.begin(), truth_order_.end(), std::size_t{0});
    const auto counted = std::stable_partition(truth_order_.begin(), truth_order_.end(),
                                               [&](std::size_t g) { return !ignored(*truths_[g], range); });
    const auto counted_truths = static_cast<std::size_t>(counted - truth_order_.begin());

    const auto& thresholds = parameters_.iou_thresholds;
    for (std::size_t t = 0; t < thresholds.size(); ++t) {
      taken_.assign(truths_.size(), false);
      for (std::size_t d = 0; d < detections_.size(); ++d) {
        const auto position = best_truth(d, std::min(thresholds[t], kLargestStartIou), counted_truths);
        bool is_matched = false;
        bool is_ignored = false;
        if (position != kNoTruth) {
          const auto g = truth_order_[position];
          taken_[g] = true;
          is_matched = truths_[g]->id != 0;  // pycocotools stores the id, and 0 says unmatched
          is_ignored = position >= counted_truths;
        }
        if (!is_matched) {
          const double size = area_of(detections_[d]->bbox_xywh);
          is_ignored = is_ignored || size < range.low || size > range.high;
        }
        if (!is_ignored) set_bit(d, is_matched, area * thresholds.size() + t);
      }
    }
  }

  static constexpr std::size_t kNoTruth = std::numeric_limits<std::size_t>::max();

  // The place in truth_order_ of the ground truth that detection d takes, or kNoTruth.
  std::size_t best_truth(std::size_t d, double threshold, std::size_t counted_truths) const {
    std::size_t best = kNoTruth;
    if (largest_iou_[d] < threshold) return best;
    double best_iou = threshold;
    for (std::size_t position = 0; position < truth_order_.size(); ++position) {
      const auto g = truth_order_[position];
      if (taken_[g] && !truths_[g]->is_crowd) continue;  // a crowd can be taken again
      if (best < counted_truths && position >= counted_truths)
        break;  // a box that counts beats all ignored ones
      const double value = ious_[d * truths_.size() + g];
      if (value < best_iou) continue;  // equal: the later one wins
      best_iou = value;
      best = position;
    }
    return best;
  }

  void set_bit(std::size_t d, bool is_matched, std::size_t cell) {
    const auto words = outcomes_.words_per_plane();
    const auto plane = d * 2 + (is_matched ? 0 : 1);
    planes_[plane * words + cell / 64] |= std::uint64_t{1} << (cell % 64);
  }

  void append_block(ImageId image_id, std::uint32_t category) {
    outcomes_.blocks.push_back({image_id, category, static_cast<std::uint32_t>(detections_.size())});
    for (const auto* detection : detections_) outcomes_.scores.push_back(detection->score);
    outcomes_.bits.insert(outcomes_.bits.end(), planes_.begin(), planes_.end());
  }

  const EvaluationParameters& parameters_;
  const MatchInput& input_;
  MatchOutcomes& outcomes_;
  std::vector<const Annotation*> truths_;
  std::vector<const Detection*> detections_;  // highest score first
  std::vector<double> ious_;                  // (detections, truths)
  std::vector<double> largest_iou_;           // of each detection
  std::vector<std::size_t> truth_order_;      // those that count first
  std::vector<char> taken_;                   // of each truth, at the current threshold
  std::vector<std::uint64_t> planes_;         // of the block, as in MatchOutcomes::bits
};

bool is_finite(const BoxXywh& box) {
  return std::all_of(box.begin(), box.end(), [](double value) { return std::isfinite(value); });
}

Grouping group_truths(const MatchInput& input, std::span<const ImageId> image_ids) {
  Grouping grouping;
  grouping.entries.reserve(input.ground_truth.size());
  for (std::size_t i = 0; i < input.ground_truth.size(); ++i) {
    const auto& truth = input.ground_truth[i];
    const auto image = index_in(image_ids, truth.image_id);
    SSD_VALIDATE(image != kNotFound,
                 "annotation {} belongs to image {}, which is not among the images to match", truth.id,
                 truth.image_id.value());
    SSD_VALIDATE(is_finite(truth.bbox_xywh), "annotation {} of image {}: its box is not finite", truth.id,
                 truth.image_id.value());
    const auto category = index_in(input.category_ids, truth.category_id);
    if (category != kNotFound) grouping.entries.push_back({image, category, static_cast<std::uint32_t>(i)});
  }
  grouping.sort(image_ids.size(), input.category_ids.size());
  return grouping;
}

// pycocotools refuses detections of unknown images too.
void refuse_unknown_images(const std::vector<ImageId>& unknown, std::size_t detection_count) {
  if (unknown.empty()) return;
  constexpr std::size_t kShown = 5;
  std::vector<std::int64_t> ids;
  for (const auto id : unknown) {
    if (ids.size() < kShown && std::find(ids.begin(), ids.end(), id.value()) == ids.end())
      ids.push_back(id.value());
  }
  throw Error(
      fmt::format("{} of {} detections belong to images that are not in the ground truth (ids {}); "
                  "do both come from the same set?",
                  unknown.size(), detection_count, fmt::join(ids, ", ")));
}

Grouping group_detections(const MatchInput& input, std::span<const ImageId> image_ids,
                          std::size_t& unknown_count) {
  Grouping grouping;
  grouping.entries.reserve(input.detections.size());
  std::vector<ImageId> unknown_images;
  for (std::size_t i = 0; i < input.detections.size(); ++i) {
    const auto& detection = input.detections[i];
    const auto image = index_in(image_ids, detection.image_id);
    if (image == kNotFound) {
      unknown_images.push_back(detection.image_id);
      continue;
    }
    SSD_VALIDATE(std::isfinite(detection.score) && is_finite(detection.bbox_xywh),
                 "detection [{}] of image {}: its score or box is not finite", i, detection.image_id.value());
    const auto category = index_in(input.category_ids, detection.category_id);
    if (category == kNotFound) {
      ++unknown_count;
    } else {
      grouping.entries.push_back({image, category, static_cast<std::uint32_t>(i)});
    }
  }
  refuse_unknown_images(unknown_images, input.detections.size());
  grouping.sort(image_ids.size(), input.category_ids.size());
  return grouping;
}

}  // namespace

MatchOutcomes match_images(const EvaluationParameters& parameters, const MatchInput& input) {
  parameters.validate();
  const auto& categories = input.category_ids;
  SSD_EXPECT(std::adjacent_find(categories.begin(), categories.end(), std::greater_equal<>()) ==
             categories.end());
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  SSD_EXPECT(input.ground_truth.size() < kMost && input.detections.size() < kMost &&
             input.image_ids.size() < kMost);

  MatchOutcomes outcomes;
  outcomes.category_count = categories.size();
  outcomes.area_count = parameters.area_ranges.size();
  outcomes.threshold_count = parameters.iou_thresholds.size();
  outcomes.detection_limit = static_cast<std::size_t>(parameters.max_detections.back());
  outcomes.image_ids.assign(input.image_ids.begin(), input.image_ids.end());
  std::sort(outcomes.image_ids.begin(), outcomes.image_ids.end());
  SSD_EXPECT(std::adjacent_find(outcomes.image_ids.begin(), outcomes.image_ids.end()) ==
             outcomes.image_ids.end());
  outcomes.ground_truth_counts.assign(outcomes.category_count * outcomes.area_count, 0);

  const auto truths = group_truths(input, outcomes.image_ids);
  const auto detections = group_detections(input, outcomes.image_ids, outcomes.unknown_category_count);

  // Walk along both groupings; each step takes the next (image, category) that either has.
  BlockMatcher matcher(parameters, input, outcomes);
  const auto key = [](const Grouping::Entry& entry) { return std::pair(entry.image, entry.category); };
  const auto group_from = [&](const std::vector<Grouping::Entry>& entries, std::size_t begin,
                              const auto& wanted) {
    std::size_t end = begin;
    while (end < entries.size() && key(entries[end]) == wanted) ++end;
    return std::span(entries).subspan(begin, end - begin);
  };
  std::size_t t = 0;
  std::size_t d = 0;
  while (t < truths.entries.size() || d < detections.entries.size()) {
    auto next = std::pair(kNotFound, kNotFound);
    if (t < truths.entries.size()) next = std::min(next, key(truths.entries[t]));
    if (d < detections.entries.size()) next = std::min(next, key(detections.entries[d]));
    const auto some_truths = group_from(truths.entries, t, next);
    const auto some_detections = group_from(detections.entries, d, next);
    matcher.match(some_truths, some_detections);
    t += some_truths.size();
    d += some_detections.size();
  }
  return outcomes;
}

}  // namespace ssd
