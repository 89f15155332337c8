#include "data/pipeline.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "core/error.hpp"

namespace ssd {

struct BatchSlot {
  Batch batch;
  PixelBlock pixels;
  std::vector<SampleBoxes> boxes;  // of each sample
  std::size_t claimed = 0;         // samples given to threads
  std::size_t unfinished = 0;
  bool is_ready = false;
  std::exception_ptr error;  // of the first sample that failed, by place
  std::size_t error_sample = 0;

  void pad_boxes();
};

// Rows of one length out of the samples' own lists.
void BatchSlot::pad_boxes() {
  std::size_t longest = 1;
  for (const SampleBoxes& own : boxes) longest = std::max(longest, own.ltrb.size());
  batch.boxes_per_sample = static_cast<int>(longest);
  batch.boxes_ltrb.assign(boxes.size() * longest * 4, 0.0F);
  batch.labels.assign(boxes.size() * longest, 0);
  for (std::size_t sample = 0; sample < boxes.size(); ++sample) {
    const SampleBoxes& own = boxes[sample];
    std::copy(own.labels.begin(), own.labels.end(),
              batch.labels.begin() + static_cast<std::ptrdiff_t>(sample * longest));
    auto row = batch.boxes_ltrb.begin() + static_cast<std::ptrdiff_t>(sample * longest * 4);
    for (const BoxLtrb& box : own.ltrb) row = std::copy(box.begin(), box.end(), row);
  }
}

PixelBlock allocate_on_heap(std::size_t bytes) {
  return PixelBlock(new std::uint8_t[bytes]);
}

LoadedBatch::LoadedBatch(LoadedBatch&& other) noexcept
    : pipeline_(std::exchange(other.pipeline_, nullptr)), slot_(other.slot_), waited_ms_(other.waited_ms_) {}

LoadedBatch& LoadedBatch::operator=(LoadedBatch&& other) noexcept {
  std::swap(pipeline_, other.pipeline_);
  std::swap(slot_, other.slot_);
  std::swap(waited_ms_, other.waited_ms_);
  return *this;
}

LoadedBatch::~LoadedBatch() {
  if (pipeline_ != nullptr) pipeline_->give_back(slot_);
}

const Batch& LoadedBatch::operator*() const {
  SSD_EXPECT(pipeline_ != nullptr);
  return slot_->batch;
}

BatchPipeline::BatchPipeline(int batch_size, std::size_t matched_columns, Plan plan, std::vector<Fill> fills,
                             const PipelineOptions& options)
    : plan_(std::move(plan)) {
  SSD_EXPECT(batch_size > 0 && options.threads > 0 && options.prefetch_batches > 0);
  SSD_EXPECT(fills.size() == static_cast<std::size_t>(options.threads));
  const auto size = static_cast<std::size_t>(batch_size);
  for (int i = 0; i < options.prefetch_batches + 1; ++i) {
    auto slot = std::make_unique<BatchSlot>();
    slot->pixels = options.allocate(size * kSampleBytes);
    slot->boxes.resize(size);
    slot->batch.size = batch_size;
    slot->batch.images = slot->pixels.get();
    slot->batch.matched_box.resize(size * matched_columns);
    slot->batch.image_ids.resize(size);
    slot->batch.image_sizes.resize(size);
    free_.push_back(slot.get());
    slots_.push_back(std::move(slot));
  }
  try {
    for (Fill& fill : fills) threads_.emplace_back([this, own = std::move(fill)] { work(own); });
  } catch (...) {
    stop();
    throw;
  }
}

BatchPipeline::~BatchPipeline() {
  stop();
}

void BatchPipeline::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  has_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool BatchPipeline::has_work() const {
  return filling_ != nullptr || (!is_ended_ && !free_.empty());
}

// With the lock held and work there. Nothing where the plan turns out to have ended.
BatchSlot* BatchPipeline::claim_sample(std::size_t& sample) {
  if (filling_ == nullptr) {
    BatchSlot* slot = free_.back();
    slot->claimed = 0;
    slot->unfinished = slot->boxes.size();
    slot->is_ready = false;
    try {
      slot->batch.states.assign(slot->boxes.size(), SampleState::real);
      is_ended_ = !plan_(slot->batch);
      SSD_EXPECT(is_ended_ || slot->batch.record_indices.size() == slot->boxes.size());
    } catch (...) {  // no later batch can be planned: this one carries the news
      is_ended_ = true;
      slot->error = std::current_exception();
      slot->is_ready = true;
      free_.pop_back();
      in_order_.push_back(slot);
    }
    if (is_ended_) {
      is_ready_.notify_all();
      return nullptr;
    }
    free_.pop_back();
    in_order_.push_back(slot);
    filling_ = slot;
    has_work_.notify_all();
  }
  BatchSlot* slot = filling_;
  sample = slot->claimed++;
  if (slot->claimed == slot->boxes.size()) filling_ = nullptr;
  return slot;
}

void BatchPipeline::work(const Fill& fill) {
  std::unique_lock lock(mutex_);
  while (true) {
    has_work_.wait(lock, [this] { return is_stopping_ || has_work(); });
    if (is_stopping_) return;
    std::size_t sample = 0;
    BatchSlot* slot = claim_sample(sample);
    if (slot == nullptr) continue;

    lock.unlock();
    std::exception_ptr error;
    try {
      fill(slot->batch, sample, slot->boxes[sample]);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();

    if (error && (!slot->error || sample < slot->error_sample)) {
      slot->error = error;
      slot->error_sample = sample;
    }
    if (--slot->unfinished > 0) continue;
    lock.unlock();  // the last of the batch: nobody else touches it now
    try {
      if (!slot->error) slot->pad_boxes();
    } catch (...) {
      slot->error = std::current_exception();
    }
    lock.lock();
    slot->is_ready = true;
    is_ready_.notify_all();
  }
}

std::optional<LoadedBatch> BatchPipeline::next() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  SSD_EXPECT(!in_order_.empty() || !free_.empty() || is_ended_);  // else the caller holds all batches
  is_ready_.wait(lock, [this] { return in_order_.empty() ? is_ended_ : in_order_.front()->is_ready; });
  if (in_order_.empty()) return std::nullopt;
  BatchSlot* slot = in_order_.front();
  if (slot->error) std::rethrow_exception(slot->error);
  in_order_.pop_front();
  const std::chrono::duration<double, std::milli> waited = std::chrono::steady_clock::now() - start;
  return LoadedBatch(this, slot, waited.count());
}

void BatchPipeline::give_back(BatchSlot* slot) {
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(slot);
  }
  has_work_.notify_one();
}

}  // namespace ssd
