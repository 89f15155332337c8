#include "reference_evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace ssd {
namespace {

using Cell = std::pair<ImageId, CategoryId>;

struct ImageResult {
  std::vector<double> scores;                        // of the detections, best first
  std::vector<std::vector<std::int64_t>> matches;    // (T, D): id of the matched ground truth, 0: none
  std::vector<std::vector<bool>> detection_ignored;  // (T, D)
  std::vector<bool> truth_ignored;                   // (G)
};

double box_area(const BoxXywh& box) {
  return box[2] * box[3];
}

double box_iou(const BoxXywh& d, const BoxXywh& g, bool crowd) {
  const double w = std::min(d[0] + d[2], g[0] + g[2]) - std::max(d[0], g[0]);
  const double h = std::min(d[1] + d[3], g[1] + g[3]) - std::max(d[1], g[1]);
  if (w <= 0 || h <= 0) return 0;
  return w * h / (crowd ? box_area(d) : box_area(d) + box_area(g) - w * h);
}

ImageResult evaluate_image(const EvaluationParameters& parameters, std::vector<Annotation> truths,
                           std::vector<Detection> detections, const AreaRange& range) {
  const auto is_ignored = [&](const Annotation& g) {
    return g.is_crowd || g.area < range.low || g.area > range.high;
  };
  std::stable_sort(truths.begin(), truths.end(),
                   [&](const auto& a, const auto& b) { return is_ignored(a) < is_ignored(b); });
  std::stable_sort(detections.begin(), detections.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  const auto limit = static_cast<std::size_t>(parameters.max_detections.back());
  if (detections.size() > limit) detections.resize(limit);

  ImageResult result;
  for (const auto& g : truths) result.truth_ignored.push_back(is_ignored(g));
  for (const auto& d : detections) result.scores.push_back(d.score);
  for (const double threshold : parameters.iou_thresholds) {
    std::vector<bool> truth_matched(truths.size());
    std::vector<std::int64_t> matches(detections.size());
    std::vector<bool> ignored(detections.size());
    for (std::size_t d = 0; d < detections.size(); ++d) {
      double best_iou = std::min(threshold, 1 - 1e-10);
      std::optional<std::size_t> best;
      for (std::size_t g = 0; g < truths.size(); ++g) {
        if (truth_matched[g] && !truths[g].is_crowd) continue;
        if (best && !result.truth_ignored[*best] && result.truth_ignored[g]) break;
        const double overlap = box_iou(detections[d].bbox_xywh, truths[g].bbox_xywh, truths[g].is_crowd);
        if (overlap < best_iou) continue;
        best_iou = overlap;
        best = g;
      }
      if (best) {
        ignored[d] = result.truth_ignored[*best];
        matches[d] = truths[*best].id;
        truth_matched[*best] = true;
      }
      const double size = box_area(detections[d].bbox_xywh);
      if (matches[d] == 0 && (size < range.low || size > range.high)) ignored[d] = true;
    }
    result.matches.push_back(matches);
    result.detection_ignored.push_back(ignored);
  }
  return result;
}

// One category, area range and limit of detections; false where there is nothing to measure.
class Curve {
 public:
  Curve(const std::vector<ImageResult>& images, std::size_t limit) {
    for (const auto& image : images) {
      for (std::size_t d = 0; d < std::min(limit, image.scores.size()); ++d) places_.emplace_back(&image, d);
      for (const bool ignored : image.truth_ignored) truth_count_ += ignored ? 0 : 1;
    }
    std::stable_sort(places_.begin(), places_.end(), [](const auto& a, const auto& b) {
      return a.first->scores[a.second] > b.first->scores[b.second];
    });
  }

  bool empty() const { return truth_count_ == 0; }

  void measure(std::size_t t) {
    recall_.clear();
    precision_.clear();
    double tp = 0;
    double fp = 0;
    for (const auto& [image, d] : places_) {
      const bool matched = image->matches[t][d] != 0;
      const bool ignored = image->detection_ignored[t][d];
      if (matched && !ignored) ++tp;
      if (!matched && !ignored) ++fp;
      recall_.push_back(tp / static_cast<double>(truth_count_));
      precision_.push_back(tp / (fp + tp + std::ldexp(1.0, -52)));
    }
    for (std::size_t i = precision_.size(); i-- > 1;) {
      if (precision_[i] > precision_[i - 1]) precision_[i - 1] = precision_[i];
    }
  }

  double final_recall() const { return recall_.empty() ? 0 : recall_.back(); }

  // Precision and score where the recall is reached; zeros where it is not.
  std::pair<double, double> at(double recall_threshold) const {
    const auto found = std::lower_bound(recall_.begin(), recall_.end(), recall_threshold);
    if (found == recall_.end()) return {0, 0};
    const auto i = static_cast<std::size_t>(found - recall_.begin());
    return {precision_[i], places_[i].first->scores[places_[i].second]};
  }

 private:
  std::vector<std::pair<const ImageResult*, std::size_t>> places_;
  std::size_t truth_count_ = 0;
  std::vector<double> recall_;
  std::vector<double> precision_;
};

std::map<Cell, std::vector<Annotation>> indexed_truths(const AnnotationSet& set) {
  std::map<std::int64_t, Annotation> by_id;
  std::map<ImageId, std::vector<std::int64_t>> ids_of_image;
  for (const auto& annotation : set.annotations) {
    ids_of_image[annotation.image_id].push_back(annotation.id);
    by_id[annotation.id] = annotation;
  }
  std::map<Cell, std::vector<Annotation>> truths;
  for (const auto& [image, ids] : ids_of_image) {
    for (const auto id : ids) truths[{by_id[id].image_id, by_id[id].category_id}].push_back(by_id[id]);
  }
  return truths;
}

}  // namespace

ReferenceResult reference_evaluation(const EvaluationParameters& parameters, const AnnotationSet& set,
                                     std::span<const Detection> detections) {
  auto truths = indexed_truths(set);
  std::map<Cell, std::vector<Detection>> found;
  for (const auto& detection : detections)
    found[{detection.image_id, detection.category_id}].push_back(detection);
  std::set<ImageId> images;
  std::set<CategoryId> categories;
  for (const auto& image : set.images) images.insert(image.id);
  for (const auto& category : set.categories) categories.insert(category.id);

  const auto t_count = parameters.iou_thresholds.size();
  const auto r_count = parameters.recall_thresholds.size();
  const auto a_count = parameters.area_ranges.size();
  const auto m_count = parameters.max_detections.size();
  ReferenceResult result;
  result.recall.assign(t_count * categories.size() * a_count * m_count, -1);
  result.precision.assign(result.recall.size() * r_count, -1);
  result.scores = result.precision;
  std::size_t k = 0;
  for (const auto category : categories) {
    for (std::size_t a = 0; a < a_count; ++a) {
      std::vector<ImageResult> of_images;
      for (const auto image : images) {
        const Cell cell{image, category};
        if (!truths.contains(cell) && !found.contains(cell)) continue;
        of_images.push_back(evaluate_image(parameters, truths[cell], found[cell], parameters.area_ranges[a]));
      }
      for (std::size_t m = 0; m < m_count; ++m) {
        Curve curve(of_images, static_cast<std::size_t>(parameters.max_detections[m]));
        if (curve.empty()) continue;
        for (std::size_t t = 0; t < t_count; ++t) {
          curve.measure(t);
          result.recall[((t * categories.size() + k) * a_count + a) * m_count + m] = curve.final_recall();
          for (std::size_t r = 0; r < r_count; ++r) {
            const auto index = (((t * r_count + r) * categories.size() + k) * a_count + a) * m_count + m;
            std::tie(result.precision[index], result.scores[index]) =
                curve.at(parameters.recall_thresholds[r]);
          }
        }
      }
    }
    ++k;
  }
  return result;
}

}  // namespace ssd
