#include "model/multibox_loss.hpp"

#include "boxes/constants.hpp"
#include "core/error.hpp"
#include "model/box_tensors.hpp"

namespace ssd {

namespace {

constexpr int kNegativesPerPositive = 3;  // Liu et al. 2016, section 2.2, "Hard negative mining"

torch::Tensor ltrb_to_cxcywh(const torch::Tensor& ltrb) {
  const auto low = ltrb.narrow(-1, 0, 2);
  const auto high = ltrb.narrow(-1, 2, 2);
  return torch::cat({0.5 * (low + high), high - low}, -1);
}

// The hardest min(3 * positives, all) of each image, ranked by background loss with positives set to 0.
torch::Tensor select_hard_negatives(const torch::Tensor& losses, const torch::Tensor& positive,
                                    const torch::Tensor& positive_count) {
  const auto ranked = losses.masked_fill(positive, 0);
  const auto order = std::get<1>(torch::sort(ranked, /*stable=*/true, /*dim=*/1, /*descending=*/true));
  const auto wanted = (kNegativesPerPositive * positive_count).clamp_max(losses.size(1)).unsqueeze(1);
  const auto is_chosen = torch::arange(losses.size(1), wanted.options()).unsqueeze(0) < wanted;
  return torch::zeros_like(positive).scatter_(1, order, is_chosen);
}

}  // namespace

torch::Tensor encode_offsets(const torch::Tensor& ground_truth_cxcywh,
                             const torch::Tensor& default_boxes_cxcywh) {
  const auto shift = centres_of(ground_truth_cxcywh) - centres_of(default_boxes_cxcywh);
  return torch::cat(
      {(1 / kCentreVariance) * shift / sides_of(default_boxes_cxcywh),
       (1 / kSizeVariance) * (sides_of(ground_truth_cxcywh) / sides_of(default_boxes_cxcywh)).log()},
      -1);
}

LossTargets build_loss_targets(const torch::Tensor& default_boxes_cxcywh, const torch::Tensor& matched_box,
                               const torch::Tensor& boxes_ltrb, const torch::Tensor& box_labels) {
  SSD_EXPECT(matched_box.dim() == 2 && matched_box.size(1) == default_boxes_cxcywh.size(0));
  const auto is_matched = matched_box >= 0;
  const auto row = matched_box.clamp_min(0).to(torch::kLong);  // (N, 8732)
  const auto labels = box_labels.to(torch::kLong).gather(1, row).masked_fill(is_matched.logical_not(), 0);
  const auto matched = boxes_ltrb.gather(1, row.unsqueeze(2).expand({-1, -1, 4}));
  const auto offsets = encode_offsets(ltrb_to_cxcywh(matched), default_boxes_cxcywh.unsqueeze(0));
  return {labels, offsets.masked_fill(is_matched.logical_not().unsqueeze(2), 0).transpose(1, 2)};
}

torch::Tensor multibox_loss(const torch::Tensor& locations, const torch::Tensor& confidences,
                            const LossTargets& targets) {
  const auto positive = targets.labels > 0;
  const auto positive_count = positive.sum(1);
  const auto location_loss = torch::smooth_l1_loss(locations, targets.offsets, at::Reduction::None)
                                 .sum(1)
                                 .masked_fill(positive.logical_not(), 0)
                                 .sum(1);
  const auto cross_entropy = torch::log_softmax(confidences, 1)
                                 .gather(1, targets.labels.unsqueeze(1))
                                 .squeeze(1)
                                 .neg();  // (N, 8732)
  const auto counted =
      select_hard_negatives(cross_entropy.detach(), positive, positive_count).logical_or(positive);
  const auto confidence_loss = (cross_entropy * counted).sum(1);
  const auto per_image =
      (location_loss + confidence_loss) / positive_count.to(locations.dtype()).clamp_min(1e-6);
  return (per_image * (positive_count > 0)).mean();
}

}  // namespace ssd
