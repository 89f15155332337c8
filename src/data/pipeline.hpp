// Threads that fill batches ahead of the one who takes them, in a fixed order whatever the number of threads.
// Threads share the samples of one batch, so that a batch is ready as soon as it can be; they sleep when
// there is nothing to do. What a batch holds and how a sample is made are given from outside (see
// loader.hpp).
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/augmentation.hpp"
#include "data/batch.hpp"

namespace ssd {

// Memory for a batch's pixels; asked for when the pipeline is made, and used again for later batches.
using PixelBlock = std::shared_ptr<std::uint8_t[]>;
using PixelAllocator = std::function<PixelBlock(std::size_t bytes)>;
PixelBlock allocate_on_heap(std::size_t bytes);

struct PipelineOptions {
  int threads = 1;
  int prefetch_batches = 3;  // filled or being filled, besides one that the taker holds
  PixelAllocator allocate = allocate_on_heap;
};

class BatchPipeline;
struct BatchSlot;  // memory of one batch and how far it is filled

// A batch lent out; going away it gives its memory back. Must not outlive the pipeline.
class LoadedBatch {
 public:
  LoadedBatch(LoadedBatch&& other) noexcept;
  LoadedBatch& operator=(LoadedBatch&& other) noexcept;
  ~LoadedBatch();

  const Batch& operator*() const;
  const Batch* operator->() const { return &**this; }
  double waited_ms() const { return waited_ms_; }  // how long next() stood still for it

 private:
  friend class BatchPipeline;
  LoadedBatch(BatchPipeline* pipeline, BatchSlot* slot, double waited_ms)
      : pipeline_(pipeline), slot_(slot), waited_ms_(waited_ms) {}

  BatchPipeline* pipeline_ = nullptr;
  BatchSlot* slot_ = nullptr;
  double waited_ms_ = 0;
};

class BatchPipeline {
 public:
  // Says what the next batch is: record_indices, epoch, iteration, states. Called in order, never by two
  // threads at once. False: there are no more batches.
  using Plan = std::function<bool(Batch&)>;
  // Fills one sample: its pixels, row of matched_box, id and size; its boxes go into `boxes`, from where they
  // are padded into the batch. Called by several threads at once for different samples.
  using Fill = std::function<void(Batch&, std::size_t sample, SampleBoxes& boxes)>;

  // fills: one for each thread, so that each may keep buffers of its own. matched_columns: 8732, or 0 for
  // none.
  BatchPipeline(int batch_size, std::size_t matched_columns, Plan plan, std::vector<Fill> fills,
                const PipelineOptions& options);
  // At any moment; samples being made are finished first.
  ~BatchPipeline();
  BatchPipeline(const BatchPipeline&) = delete;
  BatchPipeline& operator=(const BatchPipeline&) = delete;

  // The next batch, nothing after the last. Waits. One thread only. Rethrows what went wrong with one of the
  // batch's samples, then and at every later call. Throws ContractError where the caller holds so many
  // batches that none is left to be filled.
  std::optional<LoadedBatch> next();

 private:
  friend class LoadedBatch;

  void work(const Fill& fill);
  BatchSlot* claim_sample(std::size_t& sample);
  bool has_work() const;
  void give_back(BatchSlot* slot);
  void stop();

  Plan plan_;
  std::vector<std::unique_ptr<BatchSlot>> slots_;
  std::vector<BatchSlot*> free_;
  std::deque<BatchSlot*> in_order_;  // planned, not yet taken
  BatchSlot* filling_ = nullptr;     // has samples that no thread has claimed
  bool is_ended_ = false;
  bool is_stopping_ = false;
  std::mutex mutex_;  // guards everything above and the slots' counts
  std::condition_variable has_work_;
  std::condition_variable is_ready_;
  std::vector<std::thread> threads_;
};

}  // namespace ssd
