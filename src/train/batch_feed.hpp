// Batches of the loader as tensors on the device. On a GPU a batch is copied on a stream of its own, from
// pinned memory, while the step before it runs. One thread, the one that trains.
#pragma once

#include <torch/torch.h>

#include <deque>
#include <optional>

#include "data/loader.hpp"
#include "model/multibox_loss.hpp"
#include "train/compute_plan.hpp"
#include "train/input_transform.hpp"

namespace ssd {

struct DeviceBatch {
  torch::Tensor images;  // (N, 3, 300, 300), normalised, compute dtype
  LossTargets targets;
  std::uint32_t epoch = 0;
  double waited_ms = 0;  // for the loader
};

// Memory for pixels from which a GPU copies by itself; heap memory for a CPU.
PixelAllocator pixel_allocator(const ComputePlan& plan);

class BatchFeed {
 public:
  // The loader must outlive the feed. It should have been made with pixel_allocator(plan).
  BatchFeed(TrainLoader& loader, const ComputePlan& plan);
  ~BatchFeed();  // waits for copies under way
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;

  // The next batch, ready for the work that is queued from now on. Throws what the loader throws.
  DeviceBatch next();

  // On a GPU starts to copy the batch after it; to be called when the step's work is queued. Throws as
  // next().
  void prefetch();

 private:
  struct Upload {
    LoadedBatch batch;  // its memory is read until `done`
    torch::Tensor pixels, matched, boxes, labels;
    std::optional<c10::Event> done;
  };
  Upload start_upload();

  TrainLoader& loader_;
  torch::Device device_;
  InputTransform transform_;
  torch::Tensor default_boxes_;             // (8732, 4) float32 cxcywh on the device
  std::optional<c10::Stream> copy_stream_;  // on a GPU
  std::deque<Upload> uploads_;              // on a GPU: the one in use, the next one
};

}  // namespace ssd
