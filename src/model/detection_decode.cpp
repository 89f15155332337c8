#include "model/detection_decode.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "boxes/default_boxes.hpp"
#include "core/bfloat16.hpp"
#include "core/error.hpp"
#include "core/vector_clones.hpp"
#include "model/box_tensors.hpp"

namespace ssd {
namespace {

// (..., 4, K) offsets to (..., K, 4) ltrb, in the order of the reference's operations.
torch::Tensor decode_boxes(const torch::Tensor& locations, const torch::Tensor& default_boxes_cxcywh) {
  const auto offsets = locations.to(torch::kFloat).transpose(-2, -1);
  const auto sides = sides_of(default_boxes_cxcywh);
  const auto centre = centres_of(offsets) * kCentreVariance * sides + centres_of(default_boxes_cxcywh);
  const auto half_side = (sides_of(offsets) * kSizeVariance).exp() * sides * 0.5;
  return torch::cat({centre - half_side, centre + half_side}, -1).contiguous();
}

bool is_finite(const BoxLtrb& box) {
  return std::all_of(box.begin(), box.end(), [](float corner) { return std::isfinite(corner); });
}

// Candidates of one image, in the order of their default boxes.
struct Candidates {
  std::vector<BoxLtrb> boxes;
  std::vector<float> scores;
  std::vector<std::int32_t> labels;
};

// Scores of some default boxes of an image.
struct ScoredBoxes {
  torch::Tensor boxes_ltrb;  // (K, 4) float32, contiguous, on the host
  torch::Tensor scores;      // (classes - 1, K) float32, without the background, on the host
};

Candidates candidates_of(const ScoredBoxes& scored) {
  Candidates candidates;
  const auto* box = scored.boxes_ltrb.const_data_ptr<float>();
  const auto* score = scored.scores.const_data_ptr<float>();
  const auto classes = scored.scores.size(0), count = scored.scores.size(1);
  for (std::int64_t c = 0; c < classes; ++c) {
    for (std::int64_t k = 0; k < count; ++k, ++score) {
      if (!(*score > kScoreThreshold)) continue;  // a NaN is not above
      const BoxLtrb candidate{box[4 * k], box[4 * k + 1], box[4 * k + 2], box[4 * k + 3]};
      if (!is_finite(candidate)) continue;
      candidates.boxes.push_back(candidate);
      candidates.scores.push_back(*score);
      candidates.labels.push_back(static_cast<std::int32_t>(c + 1));
    }
  }
  return candidates;
}

// Softmax scores of the columns (default boxes) of one image's logits (classes, K), and their boxes; offsets
// (4, K), default boxes (K, 4).
ScoredBoxes score_boxes(const torch::Tensor& logits, const torch::Tensor& offsets,
                        const torch::Tensor& default_boxes_cxcywh) {
  const auto scores = logits.to(torch::kFloat).softmax(0).narrow(0, 1, logits.size(0) - 1);
  return {decode_boxes(offsets, default_boxes_cxcywh), scores.contiguous()};
}

constexpr std::int64_t kTile =
    256;  // default boxes whose logits are looked at together: 81 rows of them stay in L2

SSD_INLINE float value_of(float value) {
  return value;
}
using BFloat16Bits = std::uint16_t;
SSD_INLINE float value_of(BFloat16Bits value) {
  return bfloat16_to_float(value);
}

// Marks the columns of (classes, count) logits in which a foreground class may have a softmax score above the
// threshold: score_c <= exp(x_c - max), so it needs x_c > max + ln(threshold); slack for the rounding of exp.
template <class Value>
SSD_INLINE void mark_likely_of(const Value* logits, std::int64_t classes, std::int64_t count,
                               std::uint8_t* is_likely) {
  constexpr float kLogThreshold = -2.9957323F, kSlack = .01F;  // ln(0.05)
  static_assert(kScoreThreshold == 0.05F);
  float highest[kTile];
  for (std::int64_t first = 0; first < count; first += kTile) {
    const auto size = std::min(kTile, count - first);
    const Value* tile = logits + first;
    for (std::int64_t i = 0; i < size; ++i) highest[i] = value_of(tile[i]);
    for (std::int64_t c = 1; c < classes; ++c) {
      for (std::int64_t i = 0; i < size; ++i) {
        const float value = value_of(tile[c * count + i]);
        highest[i] = value > highest[i] ? value : highest[i];
      }
    }
    for (std::int64_t i = 0; i < size; ++i) highest[i] += kLogThreshold - kSlack;
    std::uint8_t* marks = is_likely + first;
    std::fill(marks, marks + size, std::uint8_t{0});
    for (std::int64_t c = 1; c < classes; ++c) {
      for (std::int64_t i = 0; i < size; ++i)
        marks[i] |= static_cast<std::uint8_t>(value_of(tile[c * count + i]) > highest[i]);
    }
  }
}
SSD_VECTOR_CLONES void mark_likely(const float* logits, std::int64_t classes, std::int64_t count,
                                   std::uint8_t* is_likely) {
  mark_likely_of(logits, classes, count, is_likely);
}
SSD_VECTOR_CLONES void mark_likely(const BFloat16Bits* logits, std::int64_t classes, std::int64_t count,
                                   std::uint8_t* is_likely) {
  mark_likely_of(logits, classes, count, is_likely);
}

// On a CPU: only the few default boxes that may pass the threshold are computed with. logits: (classes,
// 8732), float32 or bfloat16.
ScoredBoxes score_likely_boxes(const torch::Tensor& logits, const torch::Tensor& offsets,
                               const torch::Tensor& default_boxes_cxcywh) {
  const auto plain = logits.contiguous();
  const auto count = plain.size(1);
  std::vector<std::uint8_t> is_likely(static_cast<std::size_t>(count));
  if (plain.scalar_type() == torch::kBFloat16) {
    mark_likely(static_cast<const BFloat16Bits*>(plain.const_data_ptr()), plain.size(0), count,
                is_likely.data());
  } else {
    mark_likely(plain.const_data_ptr<float>(), plain.size(0), count, is_likely.data());
  }
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_likely[static_cast<std::size_t>(i)] != 0) places.push_back(i);
  }
  const auto index =
      torch::from_blob(places.data(), {static_cast<std::int64_t>(places.size())}, torch::kLong);
  return score_boxes(plain.index_select(1, index), offsets.index_select(1, index),
                     default_boxes_cxcywh.index_select(0, index));
}

// On a GPU: the default boxes with a score above the threshold are found where the scores are.
ScoredBoxes score_boxes_on_device(const torch::Tensor& logits, const torch::Tensor& offsets,
                                  const torch::Tensor& default_boxes_cxcywh) {
  const auto scores = logits.to(torch::kFloat).softmax(0).narrow(0, 1, logits.size(0) - 1);
  const auto index = (scores > kScoreThreshold).any(0).nonzero().squeeze(1);
  return {decode_boxes(offsets.index_select(1, index), default_boxes_cxcywh.index_select(0, index)).cpu(),
          scores.index_select(1, index).contiguous().cpu()};
}

}  // namespace

torch::Tensor default_boxes_tensor() {
  static_assert(sizeof(BoxCxcywh) == 4 * sizeof(float));
  const auto& boxes = default_boxes().cxcywh;
  auto tensor = torch::empty({kDefaultBoxCount, 4}, torch::kFloat);
  std::memcpy(tensor.data_ptr<float>(), boxes.data(), boxes.size() * sizeof(BoxCxcywh));
  return tensor;
}

std::vector<DecodedImage> decode_detections(const torch::Tensor& locations, const torch::Tensor& confidences,
                                            const torch::Tensor& default_boxes_cxcywh,
                                            const NmsOptions& options) {
  static_assert(sizeof(BoxLtrb) == 4 * sizeof(float));
  torch::NoGradGuard no_grad;
  SSD_EXPECT(locations.dim() == 3 && confidences.dim() == 3 && locations.size(0) == confidences.size(0));
  const auto type = confidences.scalar_type();
  const auto logits = type == torch::kBFloat16 ? confidences : confidences.to(torch::kFloat);
  std::vector<DecodedImage> decoded(static_cast<std::size_t>(locations.size(0)));
  at::parallel_for(0, locations.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    torch::NoGradGuard no_grad_in_this_thread;
    for (auto n = begin; n < end; ++n) {
      const auto image = candidates_of(
          confidences.is_cpu() ? score_likely_boxes(logits[n], locations[n], default_boxes_cxcywh)
                               : score_boxes_on_device(logits[n], locations[n], default_boxes_cxcywh));
      auto& out = decoded[static_cast<std::size_t>(n)];
      for (const auto kept : suppress({image.boxes, image.scores, image.labels}, options)) {
        out.boxes_ltrb.push_back(image.boxes[kept]);
        out.scores.push_back(image.scores[kept]);
        out.labels.push_back(image.labels[kept]);
      }
    }
  });
  return decoded;
}

}  // namespace ssd
