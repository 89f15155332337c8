// Batches of a set of shards, made ahead by threads. Local: each rank has a loader of its own and knows its
// part from rank and world size. Batches are the same for any number of threads and, for the same global
// batch, for any number of ranks. The set must outlive the loader, and the loader every batch it lends.
// next() is for one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "data/augmentation.hpp"
#include "data/decoded_cache.hpp"
#include "data/pipeline.hpp"
#include "data/sampler.hpp"
#include "data/training_boxes.hpp"
#include "record/shard_set.hpp"

namespace ssd {

struct TrainLoaderOptions {
  BatchShare share;
  std::uint64_t seed = 0;
  CrowdBoxes crowd = CrowdBoxes::train_on;
  AugmentationOptions augmentation;
  // Where to begin: a run that goes on from here gets the batches it would have got without the break.
  std::uint32_t start_epoch = 0;
  std::uint64_t start_iteration = 0;      // iterations_per_epoch() stands for the next epoch's first
  std::uint64_t decoded_cache_bytes = 0;  // of decoded pictures kept in memory; 0: none
  PipelineOptions pipeline;
};

class TrainLoader {
 public:
  // Throws Error where no record can be trained on or the start lies beyond the epoch, UsageError for
  // options.
  TrainLoader(const ShardSet& set, const TrainLoaderOptions& options);

  std::uint64_t iterations_per_epoch() const { return sampler_.iterations_per_epoch(); }
  std::size_t usable_record_count() const { return sampler_.usable_count(); }

  // The next batch, epoch after epoch without end: Batch::epoch and Batch::iteration say where it belongs.
  // Rethrows the Error of a sample that failed, which names shard, record and image.
  LoadedBatch next();

  // Of decoded pictures; null where the options ask for none.
  DecodedCache* cache() const { return cache_.get(); }

 private:
  bool plan(Batch& batch);

  TrainSampler sampler_;
  std::unique_ptr<DecodedCache> cache_;
  std::uint32_t epoch_;
  std::uint64_t iteration_;
  BatchPipeline pipeline_;  // last: its threads end before the rest goes
};

enum class EvaluationRecords {
  all,
  with_annotations,  // what the reference evaluates: 4,952 of val2017's 5,000
};

struct EvaluationLoaderOptions {
  BatchShare share;
  EvaluationRecords records = EvaluationRecords::all;
  PipelineOptions pipeline;
};

class EvaluationLoader {
 public:
  EvaluationLoader(const ShardSet& set, const EvaluationLoaderOptions& options);

  std::uint64_t batch_count() const { return sampler_.own_batch_count(); }  // of this rank

  // Whole pictures, no boxes, no matches; nothing after this rank's last batch. Batch::states tells padding
  // and bad records; Batch::iteration is the batch's place in the set.
  std::optional<LoadedBatch> next() { return pipeline_.next(); }

 private:
  bool plan(Batch& batch);

  EvaluationSampler sampler_;
  std::uint64_t planned_ = 0;
  BatchPipeline pipeline_;
};

}  // namespace ssd
