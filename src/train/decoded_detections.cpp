#include "train/decoded_detections.hpp"

namespace ssd {

void append_detections(const DecodedImage& decoded, ImageId image, int width, int height,
                       std::span<const CategoryId> category_ids, std::vector<Detection>& detections) {
  for (std::size_t i = 0; i < decoded.scores.size(); ++i) {
    const auto& box = decoded.boxes_ltrb[i];
    const double left = double{box[0]} * width, top = double{box[1]} * height;
    const double right = double{box[2]} * width, bottom = double{box[3]} * height;
    const auto category_id = category_ids[static_cast<std::size_t>(decoded.labels[i] - 1)];
    detections.push_back(
        {image, category_id, {left, top, right - left, bottom - top}, double{decoded.scores[i]}});
  }
}

}  // namespace ssd
