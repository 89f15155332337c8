#include "coco/match_outcomes.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/error.hpp"

namespace ssd {
namespace {

constexpr std::uint64_t kMagic = 0x32544d4f44535353;  // "SSSDOMT2"

template <class T>
void append(std::vector<std::byte>& bytes, const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto part = std::as_bytes(std::span(values));
  bytes.insert(bytes.end(), part.begin(), part.end());
}

// Takes count values from the front of bytes.
template <class T>
std::vector<T> take(std::span<const std::byte>& bytes, std::uint64_t count) {
  SSD_VALIDATE(count <= bytes.size() / sizeof(T), "match outcomes: the buffer is too short");
  std::vector<T> values(count);
  if (count != 0) std::memcpy(values.data(), bytes.data(), count * sizeof(T));
  bytes = bytes.subspan(count * sizeof(T));
  return values;
}

}  // namespace

std::size_t words_per_mask(const EvaluationParameters& parameters) {
  return (parameters.area_ranges.size() * parameters.iou_thresholds.size() + 63) / 64;
}

MatchOutcomes empty_outcomes(const EvaluationParameters& parameters, std::size_t category_count) {
  MatchOutcomes outcomes;
  outcomes.category_count = category_count;
  outcomes.area_count = parameters.area_ranges.size();
  outcomes.threshold_count = parameters.iou_thresholds.size();
  outcomes.detection_limit = static_cast<std::size_t>(parameters.max_detections.back());
  outcomes.ground_truth_counts.assign(category_count * outcomes.area_count, 0);
  return outcomes;
}

std::vector<std::byte> to_bytes(const MatchOutcomes& outcomes) {
  const std::vector<std::uint64_t> header{
      kMagic,
      outcomes.category_count,
      outcomes.area_count,
      outcomes.threshold_count,
      outcomes.detection_limit,
      outcomes.unknown_category_count,
      outcomes.image_ids.size(),
      outcomes.blocks.size(),
      outcomes.scores.size(),
  };
  std::vector<std::byte> bytes;
  bytes.reserve(8 * (header.size() + outcomes.image_ids.size() + outcomes.ground_truth_counts.size() +
                     2 * outcomes.blocks.size() + 2 * outcomes.scores.size() + outcomes.bits.size()));
  append(bytes, header);
  append(bytes, outcomes.image_ids);
  append(bytes, outcomes.ground_truth_counts);
  append(bytes, outcomes.blocks);
  append(bytes, outcomes.scores);
  append(bytes, outcomes.states);
  append(bytes, outcomes.bits);
  return bytes;
}

MatchOutcomes match_outcomes_from_bytes(std::span<const std::byte> bytes) {
  const auto header = take<std::uint64_t>(bytes, 9);
  SSD_VALIDATE(header[0] == kMagic, "match outcomes: the buffer does not begin like one");
  // Counts below 2^20 and 2^40 cannot overflow when they are multiplied.
  for (std::size_t i = 1; i <= 3; ++i) {
    SSD_VALIDATE(header[i] < (1U << 20), "match outcomes: a count of {} is no count", header[i]);
  }
  for (std::size_t i = 4; i < header.size(); ++i) {
    SSD_VALIDATE(header[i] < (std::uint64_t{1} << 40), "match outcomes: a count of {} is no count",
                 header[i]);
  }
  MatchOutcomes outcomes;
  outcomes.category_count = header[1];
  outcomes.area_count = header[2];
  outcomes.threshold_count = header[3];
  outcomes.detection_limit = header[4];
  outcomes.unknown_category_count = header[5];
  outcomes.image_ids = take<ImageId>(bytes, header[6]);
  outcomes.ground_truth_counts = take<std::int64_t>(bytes, header[1] * header[2]);
  outcomes.blocks = take<OutcomeBlock>(bytes, header[7]);
  outcomes.scores = take<double>(bytes, header[8]);
  outcomes.states = take<std::uint32_t>(bytes, header[8]);
  const auto with_bits =
      std::count_if(outcomes.states.begin(), outcomes.states.end(),
                    [](std::uint32_t state) { return (state & MatchOutcomes::kHasBits) != 0; });
  outcomes.bits =
      take<std::uint64_t>(bytes, static_cast<std::uint64_t>(with_bits) * 2 * outcomes.words_per_mask());
  SSD_VALIDATE(bytes.empty(), "match outcomes: the buffer is too long");
  std::uint64_t detections = 0;
  for (const auto& block : outcomes.blocks) {
    SSD_VALIDATE(block.category_index < outcomes.category_count,
                 "match outcomes: a block has no such category");
    detections += block.detection_count;
  }
  SSD_VALIDATE(detections == outcomes.scores.size(), "match outcomes: blocks and scores differ in number");
  return outcomes;
}

}  // namespace ssd
