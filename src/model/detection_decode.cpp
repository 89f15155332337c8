#include "model/detection_decode.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "boxes/default_boxes.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

using torch::indexing::Slice;

// (N, 4, 8732) offsets to (N, 8732, 4) ltrb, in the order of the reference's operations.
torch::Tensor decode_boxes(const torch::Tensor& locations, const torch::Tensor& default_boxes) {
  const auto offsets = locations.to(torch::kFloat).transpose(1, 2);
  const auto centre_of = [](const torch::Tensor& t) { return t.index({"...", Slice(0, 2)}); };
  const auto side_of = [](const torch::Tensor& t) { return t.index({"...", Slice(2, 4)}); };
  const auto centre =
      centre_of(offsets) * kCentreVariance * side_of(default_boxes) + centre_of(default_boxes);
  const auto half_side = (side_of(offsets) * kSizeVariance).exp() * side_of(default_boxes) * 0.5;
  return torch::cat({centre - half_side, centre + half_side}, 2).contiguous();
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

}  // namespace

torch::Tensor default_boxes_tensor() {
  static_assert(sizeof(BoxCxcywh) == 4 * sizeof(float));
  const auto& boxes = default_boxes().cxcywh;
  auto tensor = torch::empty({kDefaultBoxCount, 4}, torch::kFloat);
  std::memcpy(tensor.data_ptr<float>(), boxes.data(), boxes.size() * sizeof(BoxCxcywh));
  return tensor;
}

std::vector<DecodedImage> decode_detections(const torch::Tensor& locations, const torch::Tensor& confidences,
                                            const torch::Tensor& default_boxes, const NmsOptions& options) {
  static_assert(sizeof(BoxLtrb) == 4 * sizeof(float));
  torch::NoGradGuard no_grad;
  SSD_EXPECT(locations.dim() == 3 && confidences.dim() == 3 && locations.size(0) == confidences.size(0));
  const auto boxes = decode_boxes(locations, default_boxes).cpu();
  const auto scores = confidences.to(torch::kFloat).softmax(1);
  // Filtered where the scores are; only what is above the threshold travels. Without the background. NaN is
  // not above.
  const auto foreground = scores.index({Slice(), Slice(1)});
  const auto is_candidate = foreground > kScoreThreshold;
  const auto places =
      is_candidate.nonzero().cpu().contiguous();  // (K, 3): image, class - 1, default box, sorted
  const auto values = foreground.masked_select(is_candidate).cpu().contiguous();  // (K), the same order

  std::vector<Candidates> candidates(static_cast<std::size_t>(locations.size(0)));
  const auto* place = places.data_ptr<std::int64_t>();
  const auto* value = values.data_ptr<float>();
  const auto* box = boxes.data_ptr<float>();
  for (std::int64_t k = 0; k < places.size(0); ++k, place += 3) {
    const auto* corners = box + (place[0] * kDefaultBoxCount + place[2]) * 4;
    const BoxLtrb candidate{corners[0], corners[1], corners[2], corners[3]};
    if (!is_finite(candidate)) continue;
    auto& image = candidates[static_cast<std::size_t>(place[0])];
    image.boxes.push_back(candidate);
    image.scores.push_back(value[k]);
    image.labels.push_back(static_cast<std::int32_t>(place[1] + 1));
  }

  std::vector<DecodedImage> decoded;
  for (const auto& image : candidates) {
    auto& out = decoded.emplace_back();
    for (const auto kept : suppress({image.boxes, image.scores, image.labels}, options)) {
      out.boxes_ltrb.push_back(image.boxes[kept]);
      out.scores.push_back(image.scores[kept]);
      out.labels.push_back(image.labels[kept]);
    }
  }
  return decoded;
}

}  // namespace ssd
