#include "data/sampler.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/random.hpp"

namespace ssd {
namespace {

void expect_proper(const BatchShare& share) {
  SSD_EXPECT(share.batch_size > 0 && share.world_size > 0);
  SSD_EXPECT(0 <= share.rank && share.rank < share.world_size);
}

std::uint64_t ceiling(std::uint64_t count, std::uint64_t size) {
  return (count + size - 1) / size;
}

}  // namespace

TrainSampler::TrainSampler(std::vector<std::uint32_t> usable, BatchShare share, std::uint64_t seed)
    : usable_(std::move(usable)), share_(share), seed_(seed) {
  expect_proper(share_);
  SSD_EXPECT(!usable_.empty());
  const auto global_batch =
      static_cast<std::uint64_t>(share_.batch_size) * static_cast<std::uint64_t>(share_.world_size);
  iterations_ = ceiling(usable_.size(), global_batch);
}

void TrainSampler::records_of(std::uint32_t epoch, std::uint64_t iteration,
                              std::vector<std::uint32_t>& records) {
  SSD_EXPECT(iteration < iterations_);
  if (order_.empty() || order_epoch_ != epoch) {
    order_ = usable_;
    RandomStream random(seed_, RandomPurpose::epoch_order, epoch, 0);
    shuffle(std::span(order_), random);
    order_epoch_ = epoch;
  }
  const auto size = static_cast<std::uint64_t>(share_.batch_size);
  const std::uint64_t first =
      (iteration * static_cast<std::uint64_t>(share_.world_size) + static_cast<std::uint64_t>(share_.rank)) *
      size;
  records.clear();
  for (std::uint64_t i = first; i < first + size; ++i) records.push_back(order_[i % order_.size()]);
}

EvaluationSampler::EvaluationSampler(std::vector<std::uint32_t> records, BatchShare share)
    : records_(std::move(records)), share_(share) {
  expect_proper(share_);
}

std::uint64_t EvaluationSampler::batch_count() const {
  return ceiling(records_.size(), static_cast<std::uint64_t>(share_.batch_size));
}

std::uint64_t EvaluationSampler::own_batch_count() const {
  const auto rank = static_cast<std::uint64_t>(share_.rank);
  const std::uint64_t batches = batch_count();
  return batches <= rank ? 0 : ceiling(batches - rank, static_cast<std::uint64_t>(share_.world_size));
}

std::uint64_t EvaluationSampler::batch_of(std::uint64_t own) const {
  SSD_EXPECT(own < own_batch_count());
  return own * static_cast<std::uint64_t>(share_.world_size) + static_cast<std::uint64_t>(share_.rank);
}

int EvaluationSampler::records_of(std::uint64_t batch, std::vector<std::uint32_t>& records) const {
  SSD_EXPECT(batch < batch_count());
  const auto size = static_cast<std::uint64_t>(share_.batch_size);
  const std::uint64_t first = batch * size;
  const std::uint64_t real = std::min(size, records_.size() - first);
  records.assign(records_.begin() + static_cast<std::ptrdiff_t>(first),
                 records_.begin() + static_cast<std::ptrdiff_t>(first + real));
  records.resize(size, records_.back());
  return static_cast<int>(real);
}

}  // namespace ssd
