// What the matching of some images leaves for the accumulation: for every detection its score and, for each
// area range and IoU threshold, whether it is a true positive, a false positive or neither (ignored). Ranks
// send this to rank 0 as one flat buffer: about 24 bytes a detection with the default parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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
  // (detections, 2, words_per_plane): bit area * threshold_count + threshold of the first plane says true
  // positive, of the second false positive.
  std::vector<std::uint64_t> bits;

  std::size_t words_per_plane() const { return (area_count * threshold_count + 63) / 64; }
  friend bool operator==(const MatchOutcomes&, const MatchOutcomes&) = default;
};

// The buffer is in the byte order of this machine: for sending between ranks of one job, not for keeping.
std::vector<std::byte> to_bytes(const MatchOutcomes& outcomes);
// Throws Error where the buffer is not one that to_bytes made.
MatchOutcomes match_outcomes_from_bytes(std::span<const std::byte> bytes);

}  // namespace ssd
