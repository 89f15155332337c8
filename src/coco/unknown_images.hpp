// The images of detections that the ground truth does not have: how many detections, and the first few ids.
#pragma once

#include <cstddef>
#include <vector>

#include "core/ids.hpp"

namespace ssd {

class UnknownImageIds {
 public:
  void add(ImageId id);  // once for each detection
  std::size_t detection_count() const { return detection_count_; }

  // Throws Error naming some of them where there are any, as pycocotools refuses them. all: detections there
  // are.
  void refuse_any(std::size_t all_detections) const;

 private:
  std::size_t detection_count_ = 0;
  std::vector<ImageId> shown_;
};

}  // namespace ssd
