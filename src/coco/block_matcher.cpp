#include "coco/block_matcher.hpp"

#include <algorithm>
#include <cmath>

namespace ssd {
namespace {

constexpr double kLargestStartIou = 1 - 1e-10;  // pycocotools: a threshold of 1 can still be met

void set_bit(std::uint64_t* mask, std::size_t bit) {
  mask[bit / 64] |= std::uint64_t{1} << (bit % 64);
}

bool has_bit(const std::uint64_t* mask, std::size_t bit) {
  return ((mask[bit / 64] >> (bit % 64)) & 1) != 0;
}

}  // namespace

BlockMatcher::BlockMatcher(const EvaluationParameters& parameters)
    : ranges_(parameters.area_ranges), words_(words_per_mask(parameters)) {
  for (const double threshold : parameters.iou_thresholds)
    start_ious_.push_back(std::min(threshold, kLargestStartIou));
  const auto count = start_ious_.size();
  std::vector<std::size_t> order(count);
  for (std::size_t t = 0; t < count; ++t) order[t] = t;
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return start_ious_[a] < start_ious_[b]; });
  reached_.assign((count + 1) * words_, 0);
  for (std::size_t n = 0; n < count; ++n) {
    ascending_start_ious_.push_back(start_ious_[order[n]]);
    const auto row = reached_.begin() + static_cast<std::ptrdiff_t>(n * words_);
    std::copy_n(row, words_, row + static_cast<std::ptrdiff_t>(words_));
    for (std::size_t area = 0; area < ranges_.size(); ++area)
      set_bit(&reached_[(n + 1) * words_], area * count + order[n]);
  }
  cells_of_ranges_.assign(ranges_.size() * words_, 0);
  for (std::size_t area = 0; area < ranges_.size(); ++area) {
    for (std::size_t t = 0; t < count; ++t) set_bit(&cells_of_ranges_[area * words_], area * count + t);
  }
  free_.resize(words_);
  true_.resize(words_);
  disregarded_.resize(words_);
}

BlockMatcher::Box BlockMatcher::box_of(const BoxXywh& box) {
  return {box[0], box[1], box[2] + box[0], box[3] + box[1], box[2] * box[3]};
}

// Intersection over union, or over the detection's own area where the ground truth is a crowd (maskApi.c,
// bbIou). The order of the operations decides the last bit.
double BlockMatcher::iou_of(const Box& detection, const Truth& truth) {
  const double width = std::min(detection.right, truth.box.right) - std::max(detection.left, truth.box.left);
  if (width <= 0) return 0;
  const double height = std::min(detection.bottom, truth.box.bottom) - std::max(detection.top, truth.box.top);
  if (height <= 0) return 0;
  const double intersection = width * height;
  return intersection / (truth.is_crowd ? detection.size : detection.size + truth.box.size - intersection);
}

std::uint32_t BlockMatcher::ranges_around(double size) const {
  std::uint32_t ranges = 0;
  for (std::size_t area = 0; area < ranges_.size(); ++area) {
    // Written as pycocotools does, for a size that is NaN.
    const bool is_outside = size < ranges_[area].low || size > ranges_[area].high;
    ranges |= static_cast<std::uint32_t>(is_outside ? 0 : 1) << area;
  }
  return ranges;
}

void BlockMatcher::take_truths(std::span<const Annotation* const> truths, std::int64_t* counts) {
  truths_.clear();
  ignored_.assign(truths.size() * words_, 0);
  taken_.assign(truths.size() * words_, 0);
  for (std::size_t g = 0; g < truths.size(); ++g) {
    const auto& truth = *truths[g];
    truths_.push_back({box_of(truth.bbox_xywh), truth.is_crowd, truth.id != 0});
    const auto counting = truth.is_crowd ? 0 : ranges_around(truth.area);
    for (std::size_t area = 0; area < ranges_.size(); ++area) {
      if (((counting >> area) & 1) != 0) {
        ++counts[area];
      } else {
        for (std::size_t w = 0; w < words_; ++w)
          ignored_[g * words_ + w] |= cells_of_ranges_[area * words_ + w];
      }
    }
  }
}

void BlockMatcher::match(std::span<const Annotation* const> truths,
                         std::span<const Detection* const> detections, std::size_t category_index,
                         MatchOutcomes& outcomes) {
  take_truths(truths, &outcomes.ground_truth_counts[category_index * ranges_.size()]);
  for (const auto* detection : detections) {
    const auto box = box_of(detection->bbox_xywh);
    auto state = ranges_around(box.size);
    if (find_candidates(box)) {
      std::copy_n(&reached_[start_ious_.size() * words_], words_, free_.begin());
      std::fill(true_.begin(), true_.end(), 0);
      std::fill(disregarded_.begin(), disregarded_.end(), 0);
      if (has_nan_) {
        match_cell_by_cell();
      } else {
        match_by_masks();
      }
      if (append_bits(state, outcomes)) state |= MatchOutcomes::kHasBits;
    }
    outcomes.scores.push_back(detection->score);
    outcomes.states.push_back(state);
  }
}

// Says whether there are any.
bool BlockMatcher::find_candidates(const Box& detection) {
  candidates_.clear();
  has_nan_ = false;
  ious_.resize(truths_.size());
  for (std::size_t g = 0; g < truths_.size(); ++g) {
    const double iou = iou_of(detection, truths_[g]);
    ious_[g] = iou;
    if (iou < ascending_start_ious_.front()) continue;
    if (std::isnan(iou)) has_nan_ = true;  // of boxes that overflow
    std::size_t reached = 0;
    while (reached < ascending_start_ious_.size() && iou >= ascending_start_ious_[reached]) ++reached;
    candidates_.push_back({g, iou, &reached_[reached * words_]});
  }
  return !candidates_.empty();
}

void BlockMatcher::match_by_masks() {
  if (candidates_.size() > 1) {
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.iou != b.iou ? a.iou > b.iou : a.truth > b.truth;  // equal: the later one wins
    });
  }
  for (const auto standing : {Standing::counts, Standing::ignored}) {
    for (const auto& candidate : candidates_) try_candidate(candidate, standing);
  }
}

void BlockMatcher::try_candidate(const Candidate& candidate, Standing standing) {
  const auto g = candidate.truth;
  for (std::size_t w = 0; w < words_; ++w) {
    const auto ignored = ignored_[g * words_ + w];
    const auto taken = truths_[g].is_crowd ? 0 : taken_[g * words_ + w];  // a crowd can be taken again
    const auto standing_cells = standing == Standing::counts ? ~ignored : ignored;
    assign(g, w, free_[w] & candidate.reached[w] & standing_cells & ~taken, standing);
  }
}

void BlockMatcher::assign(std::size_t truth, std::size_t word, std::uint64_t cells, Standing standing) {
  taken_[truth * words_ + word] |= cells;
  free_[word] &= ~cells;
  if (standing == Standing::ignored) {
    disregarded_[word] |= cells;
  } else if (truths_[truth].has_id) {
    true_[word] |= cells;
  }
}

// Kept parallel to COCOeval.evaluateImg, where a NaN reaches every threshold and any later box then wins.
void BlockMatcher::match_cell_by_cell() {
  constexpr auto kNone = static_cast<std::size_t>(-1);
  const auto cell_count = ranges_.size() * start_ious_.size();
  for (std::size_t cell = 0; cell < cell_count; ++cell) {
    double best_iou = start_ious_[cell % start_ious_.size()];
    std::size_t best = kNone;
    auto standing = Standing::counts;
    for (const auto tried : {Standing::counts, Standing::ignored}) {
      if (best != kNone) break;  // a box that counts beats all ignored ones
      standing = tried;
      for (std::size_t g = 0; g < truths_.size(); ++g) {
        if (has_bit(&ignored_[g * words_], cell) != (tried == Standing::ignored)) continue;
        if (has_bit(&taken_[g * words_], cell) && !truths_[g].is_crowd) continue;
        if (ious_[g] < best_iou) continue;
        best_iou = ious_[g];
        best = g;
      }
    }
    if (best != kNone) assign(best, cell / 64, std::uint64_t{1} << (cell % 64), standing);
  }
}

// Unless the detection is in all cells what one without candidates is.
bool BlockMatcher::append_bits(std::uint32_t ranges, MatchOutcomes& outcomes) const {
  const auto* all = &reached_[start_ious_.size() * words_];
  if (std::equal(free_.begin(), free_.end(), all)) return false;
  outcomes.bits.insert(outcomes.bits.end(), true_.begin(), true_.end());
  for (std::size_t w = 0; w < words_; ++w) {
    std::uint64_t inside = 0;
    for (std::size_t area = 0; area < ranges_.size(); ++area) {
      if (((ranges >> area) & 1) != 0) inside |= cells_of_ranges_[area * words_ + w];
    }
    outcomes.bits.push_back(inside & ~true_[w] & ~disregarded_[w]);
  }
  return true;
}

}  // namespace ssd
