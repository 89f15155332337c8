#include "coco/match.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "coco/block_matcher.hpp"
#include "coco/box_groups.hpp"
#include "coco/id_index.hpp"
#include "coco/parallel.hpp"
#include "coco/unknown_images.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

bool is_finite(const BoxXywh& box) {
  return std::all_of(box.begin(), box.end(), [](double value) { return std::isfinite(value); });
}

// Places of ids; asked mostly for the same id again and again.
template <class Id>
class Places {
 public:
  explicit Places(std::span<const Id> ids) : index_(ids) {}

  std::uint32_t of(Id id) {
    if (id != last_) {
      last_ = id;
      place_ = index_.place_of(id);
    }
    return place_;
  }

 private:
  static_assert(IdIndex<Id>::kNone == BoxGroups::kLeftOut);
  IdIndex<Id> index_;
  std::optional<Id> last_;
  std::uint32_t place_ = IdIndex<Id>::kNone;
};

BoxGroups group_truths(const MatchInput& input, std::span<const ImageId> image_ids) {
  Places<ImageId> images(image_ids);
  Places<CategoryId> categories(input.category_ids);
  std::vector<BoxGroups::Place> places;
  places.reserve(input.ground_truth.size());
  for (const auto& truth : input.ground_truth) {
    places.push_back({images.of(truth.image_id), categories.of(truth.category_id)});
    SSD_VALIDATE(places.back().image != BoxGroups::kLeftOut,
                 "annotation {} belongs to image {}, which is not among the images to match", truth.id,
                 truth.image_id.value());
    SSD_VALIDATE(is_finite(truth.bbox_xywh), "annotation {} of image {}: its box is not finite", truth.id,
                 truth.image_id.value());
  }
  return BoxGroups(places, image_ids.size());
}

BoxGroups group_detections(const MatchInput& input, std::span<const ImageId> image_ids,
                           std::size_t& unknown_count) {
  Places<ImageId> images(image_ids);
  Places<CategoryId> categories(input.category_ids);
  std::vector<BoxGroups::Place> places(input.detections.size());
  UnknownImageIds unknown_images;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto& detection = input.detections[i];
    places[i] = {images.of(detection.image_id), categories.of(detection.category_id)};
    if (places[i].image == BoxGroups::kLeftOut) {
      unknown_images.add(detection.image_id);
      continue;
    }
    SSD_VALIDATE(std::isfinite(detection.score) && is_finite(detection.bbox_xywh),
                 "detection [{}] of image {}: its score or box is not finite", i, detection.image_id.value());
    if (places[i].category == BoxGroups::kLeftOut) ++unknown_count;
  }
  unknown_images.refuse_any(input.detections.size());
  return BoxGroups(places, image_ids.size());
}

// Matches one image after another; its buffers are used again.
class ImageMatcher {
 public:
  ImageMatcher(const EvaluationParameters& parameters, const MatchInput& input)
      : input_(input),
        use_categories_(parameters.use_categories),
        limit_(static_cast<std::size_t>(parameters.max_detections.back())),
        blocks_(parameters),
        truth_sorter_(input.category_ids.size()),
        detection_sorter_(input.category_ids.size()) {}

  void match(ImageId image_id, std::span<const GroupedBox> truths, std::span<const GroupedBox> detections,
             MatchOutcomes& outcomes) {
    truths = truth_sorter_.sorted(truths);
    detections = detection_sorter_.sorted(detections);
    if (!use_categories_) return match_block(image_id, 0, truths, detections, outcomes);
    // Each step takes the next category that either has.
    while (!truths.empty() || !detections.empty()) {
      auto category = BoxGroups::kLeftOut;
      if (!truths.empty()) category = std::min(category, truths.front().category);
      if (!detections.empty()) category = std::min(category, detections.front().category);
      const auto some_truths = take_category(truths, category);
      const auto some_detections = take_category(detections, category);
      match_block(image_id, category, some_truths, some_detections, outcomes);
    }
  }

 private:
  static std::span<const GroupedBox> take_category(std::span<const GroupedBox>& boxes,
                                                   std::uint32_t category) {
    std::size_t count = 0;
    while (count < boxes.size() && boxes[count].category == category) ++count;
    const auto taken = boxes.first(count);
    boxes = boxes.subspan(count);
    return taken;
  }

  void match_block(ImageId image_id, std::uint32_t category, std::span<const GroupedBox> truths,
                   std::span<const GroupedBox> detections, MatchOutcomes& outcomes) {
    truths_.clear();
    for (const auto& box : truths) truths_.push_back(&input_.ground_truth[box.index]);
    detections_.clear();
    for (const auto& box : detections) detections_.push_back(&input_.detections[box.index]);
    // Equal scores keep their order. Results often come sorted.
    const auto by_score = [](const Detection* a, const Detection* b) { return a->score > b->score; };
    if (!std::is_sorted(detections_.begin(), detections_.end(), by_score))
      std::stable_sort(detections_.begin(), detections_.end(), by_score);
    if (detections_.size() > limit_) detections_.resize(limit_);
    blocks_.match(truths_, detections_, category, outcomes);
    if (!detections_.empty())
      outcomes.blocks.push_back({image_id, category, static_cast<std::uint32_t>(detections_.size())});
  }

  const MatchInput& input_;
  bool use_categories_;
  std::size_t limit_;  // of detections
  BlockMatcher blocks_;
  CategorySorter truth_sorter_;
  CategorySorter detection_sorter_;
  std::vector<const Annotation*> truths_;
  std::vector<const Detection*> detections_;
};

template <class T>
void append(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void append(MatchOutcomes& all, const MatchOutcomes& more) {
  for (std::size_t i = 0; i < all.ground_truth_counts.size(); ++i)
    all.ground_truth_counts[i] += more.ground_truth_counts[i];
  append(all.blocks, more.blocks);
  append(all.scores, more.scores);
  append(all.states, more.states);
  append(all.bits, more.bits);
}

}  // namespace

MatchOutcomes match_images(const EvaluationParameters& parameters, const MatchInput& input, int threads) {
  parameters.validate();
  const auto& categories = input.category_ids;
  SSD_EXPECT(std::adjacent_find(categories.begin(), categories.end(), std::greater_equal<>()) ==
             categories.end());
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  SSD_EXPECT(input.ground_truth.size() < kMost && input.detections.size() < kMost &&
             input.image_ids.size() < kMost);

  auto outcomes = empty_outcomes(parameters, parameters.use_categories ? categories.size() : 1);
  auto& image_ids = outcomes.image_ids;
  image_ids.assign(input.image_ids.begin(), input.image_ids.end());
  std::sort(image_ids.begin(), image_ids.end());
  SSD_EXPECT(std::adjacent_find(image_ids.begin(), image_ids.end()) == image_ids.end());
  const auto truths = group_truths(input, image_ids);
  const auto detections = group_detections(input, image_ids, outcomes.unknown_category_count);

  // Each thread takes some images that follow each other, so that the pieces in turn are the whole.
  constexpr std::size_t kPiecesOfThread = 8;
  const auto piece_count = threads > 1 ? static_cast<std::size_t>(threads) * kPiecesOfThread : 1;
  std::vector<MatchOutcomes> pieces(piece_count, empty_outcomes(parameters, outcomes.category_count));
  parallel_for(piece_count, threads, [&](std::size_t piece) {
    ImageMatcher matcher(parameters, input);
    const auto end = image_ids.size() * (piece + 1) / piece_count;
    for (auto i = image_ids.size() * piece / piece_count; i < end; ++i)
      matcher.match(image_ids[i], truths.of_image(i), detections.of_image(i), pieces[piece]);
  });
  for (auto& piece : pieces) {
    append(outcomes, piece);
    piece = {};
  }
  return outcomes;
}

}  // namespace ssd
