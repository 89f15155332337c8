#include "train/batch_feed.hpp"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "boxes/constants.hpp"
#include "core/error.hpp"
#include "model/detection_decode.hpp"

namespace ssd {

PixelAllocator pixel_allocator(const ComputePlan& plan) {
  if (!plan.device.is_cuda()) return allocate_on_heap;
  return [](std::size_t bytes) {
    const auto options = torch::TensorOptions(torch::kByte).pinned_memory(true);
    auto block = std::make_shared<torch::Tensor>(torch::empty({static_cast<std::int64_t>(bytes)}, options));
    return PixelBlock(block, block->data_ptr<std::uint8_t>());
  };
}

BatchFeed::BatchFeed(TrainLoader& loader, const ComputePlan& plan)
    : loader_(loader),
      device_(plan.device),
      transform_(plan),
      default_boxes_(default_boxes_tensor().to(plan.device)) {
  if (device_.is_cuda())
    copy_stream_ = c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_);
}

BatchFeed::~BatchFeed() {
  for (auto& upload : uploads_) {
    if (upload.done) upload.done->synchronize();
  }
}

BatchFeed::Upload BatchFeed::start_upload() {
  Upload upload{loader_.next(), {}, {}, {}, {}, {}};
  const auto& rows = *upload.batch;
  std::optional<c10::StreamGuard> on_copy_stream;
  if (copy_stream_) on_copy_stream.emplace(*copy_stream_);
  const auto on_device = [&](const void* data, at::IntArrayRef shape, torch::ScalarType type,
                             bool is_pinned) {
    const auto host = torch::from_blob(const_cast<void*>(data), shape, type);
    if (!copy_stream_) return host;
    return (is_pinned ? host : host.pin_memory()).to(device_, /*non_blocking=*/true);
  };
  upload.pixels = on_device(rows.images, {rows.size, kInputSide, kInputSide, 3}, torch::kByte, true);
  upload.matched = on_device(rows.matched_box.data(), {rows.size, kDefaultBoxCount}, torch::kInt, false);
  upload.boxes =
      on_device(rows.boxes_ltrb.data(), {rows.size, rows.boxes_per_sample, 4}, torch::kFloat, false);
  upload.labels = on_device(rows.labels.data(), {rows.size, rows.boxes_per_sample}, torch::kInt, false);
  if (copy_stream_) {
    upload.done.emplace(device_.type());
    upload.done->record(*copy_stream_);
  }
  return upload;
}

void BatchFeed::prefetch() {
  if (copy_stream_ && uploads_.size() < 2) uploads_.push_back(start_upload());
}

DeviceBatch BatchFeed::next() {
  if (!uploads_.empty()) {  // the batch that was in use until now
    if (uploads_.front().done) uploads_.front().done->synchronize();
    uploads_.pop_front();
  }
  if (uploads_.empty()) uploads_.push_back(start_upload());
  auto& upload = uploads_.front();
  if (upload.done) {
    const auto stream = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
    upload.done->block(stream);
    for (const auto& tensor : {upload.pixels, upload.matched, upload.boxes, upload.labels})
      tensor.record_stream(stream);
  }
  return {transform_.normalise(upload.pixels),
          build_loss_targets(default_boxes_, upload.matched, upload.boxes, upload.labels),
          upload.batch->epoch, upload.batch.waited_ms()};
}

}  // namespace ssd
