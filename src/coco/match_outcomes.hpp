// What the matching of some images leaves for the accumulation: for every detection its score, the area
// ranges that its own size falls into, and, where it overlaps ground truth, whether it is a true positive, a
// false positive or neither (ignored) in each area range at each IoU threshold. Ranks send this to rank 0 as
// one flat buffer: 12 bytes a detection, with the default parameters 16 more where it overlaps something.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coco/evaluation_parameters.hpp"
#include "core/ids.hpp"

namespace ssd {

// The detections of one image and category, at most the largest limit of detections, highest score first.
struct OutcomeBlock {
  ImageId image_id;
  std::uint32_t category_index = 0;
  std::uint32_t detection_count = 0;
  friend bool operator==(const OutcomeBlock&, const OutcomeBlock&) = default;
};

struct MatchOutcomes {
  std::size_t category_count = 0;
  std::size_t area_count = 0;
  std::size_t threshold_count = 0;
  std::size_t detection_limit = 0;         // per image and category: the largest of the parameters
  std::size_t unknown_category_count = 0;  // detections left out, since their category is not evaluated

  std::vector<ImageId> image_ids;                 // that were matched, with or without boxes; ascending
  std::vector<std::int64_t> ground_truth_counts;  // (categories, areas): boxes that count
  std::vector<OutcomeBlock> blocks;               // by image, then category
  std::vector<double> scores;                     // of the blocks in turn
  // Of each detection: bit a says that its size is in area range a, kHasBits that it has bits of its own.
  // Without them it is a false positive in the ranges of its size, at every threshold.
  std::vector<std::uint32_t> states;
  // (detections with kHasBits, 2, words_per_mask()): bit area * threshold_count + threshold of the first mask
  // says true positive, of the second false positive.
  std::vector<std::uint64_t> bits;

  static constexpr std::uint32_t kHasBits = std::uint32_t{1} << 31;

  std::size_t words_per_mask() const { return (area_count * threshold_count + 63) / 64; }
  friend bool operator==(const MatchOutcomes&, const MatchOutcomes&) = default;
};

std::size_t words_per_mask(const EvaluationParameters& parameters);

// Nothing matched yet: the counts of the parameters, no image.
MatchOutcomes empty_outcomes(const EvaluationParameters& parameters, std::size_t category_count);

// The buffer is in the byte order of this machine: for sending between ranks of one job, not for keeping.
std::vector<std::byte> to_bytes(const MatchOutcomes& outcomes);
// Throws Error where the buffer is not one that to_bytes made.
MatchOutcomes match_outcomes_from_bytes(std::span<const std::byte> bytes);

}  // namespace ssd
