#include "data/loader.hpp"

#include <algorithm>
#include <memory>

#include "boxes/constants.hpp"
#include "core/error.hpp"
#include "data/sample.hpp"

namespace ssd {
namespace {

std::vector<std::uint32_t> validated_usable_records(const ShardSet& set, const TrainLoaderOptions& options) {
  options.augmentation.validate();
  auto usable = usable_records(set, options.crowd);
  SSD_VALIDATE(!usable.empty(), "'{}': none of the {} pictures of split '{}' has a box to train on",
               set.folder().string(), set.records().size(), split_name(set.split()));
  return usable;
}

std::uint64_t validated_start(const TrainLoaderOptions& options, std::uint64_t iterations_per_epoch) {
  SSD_VALIDATE(options.start_iteration <= iterations_per_epoch,
               "start at iteration {} of epoch {}: an epoch has {} iterations with {} ranks of batch size {}",
               options.start_iteration, options.start_epoch, iterations_per_epoch, options.share.world_size,
               options.share.batch_size);
  return options.start_iteration;
}

// A function for each thread with a maker of its own. (std::function wants what it holds to be copyable.)
template <class Make>
std::vector<BatchPipeline::Fill> make_fills(const ShardSet& set, DecodedCache* cache, int threads,
                                            const Make& make) {
  std::vector<BatchPipeline::Fill> fills;
  for (int i = 0; i < threads; ++i) {
    fills.emplace_back(
        [make, maker = std::make_shared<SampleMaker>(set, cache)](
            Batch& batch, std::size_t sample, SampleBoxes& boxes) { make(*maker, batch, sample, boxes); });
  }
  return fills;
}

std::vector<std::uint32_t> evaluation_records(const ShardSet& set, EvaluationRecords which) {
  std::vector<std::uint32_t> records;
  for (std::size_t i = 0; i < set.records().size(); ++i) {
    if (which == EvaluationRecords::all || set.records()[i].annotation_count > 0) {
      records.push_back(static_cast<std::uint32_t>(i));
    }
  }
  return records;
}

}  // namespace

TrainLoader::TrainLoader(const ShardSet& set, const TrainLoaderOptions& options)
    : sampler_(validated_usable_records(set, options), options.share, options.seed),
      cache_(options.decoded_cache_bytes == 0
                 ? nullptr
                 : std::make_unique<DecodedCache>(set.records().size(), options.decoded_cache_bytes)),
      epoch_(options.start_epoch),
      iteration_(validated_start(options, sampler_.iterations_per_epoch())),
      pipeline_(
          options.share.batch_size, kDefaultBoxCount, [this](Batch& batch) { return plan(batch); },
          make_fills(set, cache_.get(), options.pipeline.threads,
                     [seed = options.seed, crowd = options.crowd, augmentation = options.augmentation](
                         SampleMaker& maker, Batch& batch, std::size_t sample, SampleBoxes& boxes) {
                       maker.make_training(batch, sample, seed, crowd, augmentation, boxes);
                     }),
          options.pipeline) {}

bool TrainLoader::plan(Batch& batch) {
  if (iteration_ == iterations_per_epoch()) {
    ++epoch_;
    iteration_ = 0;
  }
  batch.epoch = epoch_;
  batch.iteration = iteration_;
  sampler_.records_of(epoch_, iteration_++, batch.record_indices);
  return true;
}

LoadedBatch TrainLoader::next() {
  auto batch = pipeline_.next();
  SSD_EXPECT(batch.has_value());
  return std::move(*batch);
}

EvaluationLoader::EvaluationLoader(const ShardSet& set, const EvaluationLoaderOptions& options)
    : sampler_(evaluation_records(set, options.records), options.share),
      pipeline_(
          options.share.batch_size, 0, [this](Batch& batch) { return plan(batch); },
          make_fills(set, nullptr, options.pipeline.threads,
                     [](SampleMaker& maker, Batch& batch, std::size_t sample, SampleBoxes&) {
                       maker.make_evaluation(batch, sample);
                     }),
          options.pipeline) {}

bool EvaluationLoader::plan(Batch& batch) {
  if (planned_ == sampler_.own_batch_count()) return false;
  batch.iteration = sampler_.batch_of(planned_++);
  const int real = sampler_.records_of(batch.iteration, batch.record_indices);
  std::fill(batch.states.begin() + real, batch.states.end(), SampleState::padding);
  return true;
}

}  // namespace ssd
