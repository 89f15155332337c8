// The cells of one category in an evaluation: from its detections, highest score first, to recall, precision
// and scores.
//
// Only what a detection overlaps makes it more than a false positive of its size, so the detections without
// bits of their own (MatchOutcomes::states) are counted, and each cell goes through the few others alone:
// there precision is known from the counts before them, and between true positives it only falls.
//
// One object a thread; its buffers are used again for each category.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coco/accumulate.hpp"

namespace ssd {

struct RankedDetection {
  double score = 0;
  const std::uint64_t* bits = nullptr;  // as in MatchOutcomes; null: none
  std::uint32_t rank = 0;               // within its image and category
  std::uint32_t state = 0;              // as in MatchOutcomes
};

class CategoryCurves {
 public:
  explicit CategoryCurves(const EvaluationParameters& parameters);

  // ranked: highest score first; equal scores by image, then by rank. Writes the cells of the category in
  // result, which holds -1 where there is no ground truth.
  void write(std::span<const RankedDetection> ranked, std::size_t category, EvaluationResult& result);

 private:
  void take_detections(std::span<const RankedDetection> ranked, std::size_t limit);
  void find_true_positives(std::size_t area, std::size_t threshold);
  void write_cell(std::size_t t, std::size_t category, std::size_t a, std::size_t m,
                  EvaluationResult& result) const;

  const EvaluationParameters& parameters_;
  std::size_t area_count_;
  std::size_t words_;
  std::vector<std::vector<std::size_t>> needed_;  // by area: true positives for each recall threshold

  // Of the current limit of detections.
  bool has_detections_ = false;
  double first_score_ = 0;
  struct Overlapping {
    double score;
    const std::uint64_t* bits;
  };
  std::vector<Overlapping> overlapping_;     // the detections with bits
  std::vector<std::uint32_t> false_before_;  // (overlapping, areas): false positives without bits before them
  std::vector<std::uint32_t> false_count_;   // (areas)
  // Of the current cell, at each true positive:
  std::vector<double> precision_;  // the greatest there or at a higher recall
  std::vector<double> scores_;
};

}  // namespace ssd
