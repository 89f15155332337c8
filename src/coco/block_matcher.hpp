// Matches the detections of one image and category to its ground truth, for all area ranges and IoU
// thresholds at once. A cell is one area range with one threshold: bit area * thresholds + threshold of a
// mask.
//
// pycocotools goes through the cells one by one: in each a detection takes the free box of greatest IoU that
// reaches the threshold (of equal ones the last), boxes that count before ignored ones. Here the boxes that a
// detection overlaps are tried from the greatest IoU down, first where they count, then where they are
// ignored, and each takes all the cells it can: the same choice in every cell. Few detections overlap
// anything; the others need no mask.
//
// One object a thread; its buffers are used again for each block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coco/annotations.hpp"
#include "coco/detections.hpp"
#include "coco/evaluation_parameters.hpp"
#include "coco/match_outcomes.hpp"

namespace ssd {

class BlockMatcher {
 public:
  explicit BlockMatcher(const EvaluationParameters& parameters);

  // truths: in the order of the file. detections: highest score first, no more than the limit. Adds to the
  // ground truth counts, scores, states and bits of outcomes, but no block.
  void match(std::span<const Annotation* const> truths, std::span<const Detection* const> detections,
             std::size_t category_index, MatchOutcomes& outcomes);

 private:
  using Mask = std::vector<std::uint64_t>;

  struct Box {
    double left, top, right, bottom;
    double size;  // pixels^2
  };
  struct Truth {
    Box box;
    bool is_crowd;
    bool has_id;  // pycocotools stores the id of the match, and 0 says unmatched
  };
  struct Candidate {
    std::size_t truth;
    double iou;
    const std::uint64_t* reached;  // cells
  };
  // What a cell says of a ground truth; crowds are ignored in every cell.
  enum class Standing { counts, ignored };

  static Box box_of(const BoxXywh& box);
  static double iou_of(const Box& detection, const Truth& truth);
  std::uint32_t ranges_around(double size) const;  // a bit for each area range
  void take_truths(std::span<const Annotation* const> truths, std::int64_t* counts);
  bool find_candidates(const Box& detection);
  void match_by_masks();
  void try_candidate(const Candidate& candidate, Standing standing);
  void match_cell_by_cell();
  void assign(std::size_t truth, std::size_t word, std::uint64_t cells, Standing standing);
  bool append_bits(std::uint32_t ranges, MatchOutcomes& outcomes) const;

  std::vector<AreaRange> ranges_;
  std::vector<double> start_ious_;  // of the thresholds: what an IoU must reach
  std::size_t words_;               // of a mask
  std::vector<double> ascending_start_ious_;
  Mask reached_;          // (thresholds + 1, words): the cells of the n lowest thresholds
  Mask cells_of_ranges_;  // (areas, words)

  std::vector<Truth> truths_;
  Mask ignored_;  // (truths, words): cells where the ground truth does not count
  Mask taken_;    // (truths, words)

  // Of the current detection.
  std::vector<double> ious_;  // with every ground truth
  bool has_nan_ = false;      // among the IoUs
  std::vector<Candidate> candidates_;
  Mask free_;         // cells where nothing is matched yet
  Mask true_;         // true positives
  Mask disregarded_;  // matched with an ignored box
};

}  // namespace ssd
