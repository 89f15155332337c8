// Averages the arena's gradients over all ranks while backward is still running: hooks on the parameters fill
// buckets, full buckets start their allreduce in the order of their index (Note [Same bucket order on every
// rank]).
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "comm/gradient_communicator.hpp"
#include "train/bucket_plan.hpp"
#include "train/parameter_arena.hpp"

namespace ssd {

struct ReducerOptions {
  // What convolution gradients travel as; BatchNorm's travel in the dtype of the master weights.
  WireType wire_type = WireType::float32;
  BucketOptions buckets;
};

class GradientReducer {
 public:
  // communicator: null for a world of one; then the gradients stay as they are. Arena and communicator must
  // outlive the reducer, and the reducer every backward of the model.
  GradientReducer(ParameterArena& arena, GradientCommunicator* communicator, const ReducerOptions& options);
  ~GradientReducer();  // takes its hooks off the parameters
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Before each backward.
  void begin_step();
  // Collective, after backward: starts what is left, waits for all. Then averaged() is valid until the
  // gradients are zeroed.
  void finish_step();

  // The averaged gradients of a block, (n), in the dtype they travelled in.
  torch::Tensor averaged(std::size_t block) const { return averaged_[block]; }
  // Milliseconds that finish_step stood still in the last step: communication that backward did not hide. NaN
  // on a GPU, where only the device waits (a PhaseClock tells it there).
  double exposed_ms() const { return exposed_ms_; }

 private:
  struct PlacedBucket {
    std::size_t block;
    std::int64_t offset, count;  // elements
    std::size_t entry_count;
    std::size_t waiting_for;  // entries whose gradient is not ready yet
  };

  void on_gradient_ready(std::size_t bucket);
  void start_full_buckets();
  void start(const PlacedBucket& bucket);

  ParameterArena& arena_;
  GradientCommunicator* communicator_;
  std::vector<WireType> wire_types_;     // of each block
  std::vector<torch::Tensor> averaged_;  // of each block
  std::vector<PlacedBucket> buckets_;
  std::size_t next_bucket_ = 0;  // the first that has not been started
  double exposed_ms_ = 0;
};

}  // namespace ssd
