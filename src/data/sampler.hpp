// Which records make which batch. Pure: nothing here depends on threads or on what other ranks do, only on
// the numbers given, so that every rank knows its part without asking.
#pragma once

#include <cstdint>
#include <vector>

namespace ssd {

// A rank's part of the work. Batch sizes are per rank.
struct BatchShare {
  int batch_size = 1;
  int rank = 0;
  int world_size = 1;
};

// Training: each epoch is a permutation of the usable records, by seed and epoch. An iteration takes the next
// batch_size * world_size of them, the last one filled up from the head of the same epoch's order; rank r has
// the r-th slice. So ranks that share a global batch differently train on the same samples in the same
// iteration. Not thread safe: keeps the order of the last epoch asked for.
class TrainSampler {
 public:
  // usable: places of records (usable_records()); at least one.
  TrainSampler(std::vector<std::uint32_t> usable, BatchShare share, std::uint64_t seed);

  std::uint64_t iterations_per_epoch() const { return iterations_; }
  std::size_t usable_count() const { return usable_.size(); }

  // This rank's records of an iteration below iterations_per_epoch(): batch_size of them.
  void records_of(std::uint32_t epoch, std::uint64_t iteration, std::vector<std::uint32_t>& records);

 private:
  std::vector<std::uint32_t> usable_;
  BatchShare share_;
  std::uint64_t seed_;
  std::uint64_t iterations_;
  std::vector<std::uint32_t> order_;
  std::uint32_t order_epoch_ = 0;
};

// Evaluation: batch k is records [k * batch_size, (k + 1) * batch_size) of the list, the last one padded with
// the last record; batch k belongs to rank k mod world_size. So a record's batch does not depend on the
// number of ranks.
class EvaluationSampler {
 public:
  EvaluationSampler(std::vector<std::uint32_t> records, BatchShare share);

  std::uint64_t own_batch_count() const;            // of this rank; may be 0
  std::uint64_t batch_of(std::uint64_t own) const;  // place in the set of this rank's batch number `own`
  // Returns how many of the records are real; the rest is padding.
  int records_of(std::uint64_t batch, std::vector<std::uint32_t>& records) const;

 private:
  std::uint64_t batch_count() const;

  std::vector<std::uint32_t> records_;
  BatchShare share_;
};

}  // namespace ssd
