#include "infer/drawn_detections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "report/draw.hpp"

namespace ssd {

DetectionDrawer::DetectionDrawer(std::vector<Category> classes, float score_threshold,
                                 const AnnotationSet* truth)
    : categories_(std::move(classes)), score_threshold_(score_threshold), truth_(truth) {
  if (truth == nullptr) return;
  for (const auto& category : truth->categories) {
    const auto same = [&](const Category& known) { return known.id == category.id; };
    if (std::none_of(categories_.begin(), categories_.end(), same)) categories_.push_back(category);
  }
}

std::int32_t DetectionDrawer::label_of(CategoryId id) const {
  const auto same = [&](const Category& known) { return known.id == id; };
  const auto place = std::find_if(categories_.begin(), categories_.end(), same);
  SSD_EXPECT(place != categories_.end());
  return static_cast<std::int32_t>(place - categories_.begin()) + 1;
}

RgbImage DetectionDrawer::draw(const RgbImage& picture, ImageId id,
                               std::span<const Detection> detections) const {
  std::set<std::int32_t> labels;
  const auto name_of = [&](std::int32_t label) {
    return categories_[static_cast<std::size_t>(label - 1)].name;
  };
  Panel found{fmt::format("detections: {} (score > {})", detections.size(), score_threshold_), {}};
  for (const auto& detection : detections) {
    const auto label = label_of(detection.category_id);
    labels.insert(label);
    found.boxes.push_back(
        {detection.bbox_xywh, label, fmt::format("{} {:.2f}", name_of(label), detection.score)});
  }
  std::vector<Panel> panels;
  if (truth_ != nullptr) {
    Panel truth;
    for (const auto& box : truth_->annotations) {
      if (box.image_id != id) continue;
      const auto label = label_of(box.category_id);
      labels.insert(label);
      truth.boxes.push_back({box.bbox_xywh, label, name_of(label) + (box.is_crowd ? " (crowd)" : "")});
    }
    truth.title = fmt::format("ground truth: {}", truth.boxes.size());
    panels.push_back(std::move(truth));
  }
  panels.push_back(std::move(found));
  std::vector<LegendEntry> legend;
  for (const auto label : labels) legend.push_back({label, name_of(label)});
  return draw_panels(picture, panels, legend);
}

}  // namespace ssd
