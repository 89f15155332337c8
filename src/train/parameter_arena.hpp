// All parameters of a network in a few contiguous blocks of memory. After construction the module's
// parameters and their gradients are views of the blocks: backward adds gradients in place, a bucket of the
// allreduce is a range of a block, the optimizer is one pass over it, and a checkpoint is a copy of it.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/ssd300.hpp"

namespace ssd {

// A parameter's place in its block, in elements.
struct ArenaEntry {
  std::string name;
  torch::Tensor parameter;  // the module's; a view of the block's weights
  std::int64_t offset = 0;
  std::int64_t count = 0;
  bool has_weight_decay = false;
};

// One dtype of the network. The entries with weight decay come first, [0, decayed_count), the others after
// them; both in reverse order of use, which is about the order in which backward makes their gradients.
// Entries begin at multiples of 64 bytes; what lies between is 0 and stays 0.
struct ArenaBlock {
  std::vector<ArenaEntry> entries;
  std::int64_t decayed_count = 0;
  torch::Tensor weights;    // (n) compute dtype
  torch::Tensor gradients;  // (n) compute dtype
  torch::Tensor master;     // (n) float32 or float64; the same memory as weights where these have that dtype
  torch::Tensor momentum;   // (n) dtype of master
  // Where the next update writes master and momentum to, where these are to stay as they are; else undefined.
  torch::Tensor next_master, next_momentum;
};

struct ArenaOptions {
  torch::ScalarType compute_type = torch::kFloat;  // of convolutions: float32, float64, bfloat16 or float16
  bool channels_last = false;                      // layout of 4-D weights and gradients within the block
};

class ParameterArena {
 public:
  // Converts the model: convolution weights and biases to the compute dtype, BatchNorm's parameters and
  // statistics to float32 (float64 if that is the compute dtype). The model must be on its device already and
  // outlive the arena.
  ParameterArena(Ssd300& model, const ArenaOptions& options);
  ParameterArena(const ParameterArena&) = delete;
  ParameterArena& operator=(const ParameterArena&) = delete;

  // Two blocks: convolutions, and BatchNorm's parameters.
  std::vector<ArenaBlock>& blocks() { return blocks_; }
  const std::vector<ArenaBlock>& blocks() const { return blocks_; }
  const ArenaOptions& options() const { return options_; }

  // Gradients to 0, keeping the views (Module::zero_grad would drop them).
  void zero_gradients();

  // Weights in the compute dtype from the master weights. After the masters have been set from outside.
  void copy_masters_to_weights();

  // Views of master weights and momentum, in the parameter's shape.
  torch::Tensor master_of(const ArenaBlock& block, const ArenaEntry& entry) const;
  torch::Tensor momentum_of(const ArenaBlock& block, const ArenaEntry& entry) const;

  // Note [Spare blocks]
  // A snapshot is not copied: the update after it writes into a second set of blocks, and the two change
  // places. What preserve_state() leaves behind, master_of() and momentum_of() of that moment, keeps its
  // values until the next call. On a CPU; elsewhere the state has to be copied.
  void reserve_spare_blocks();  // makes and touches their memory; before preserve_state()
  void preserve_state();
  bool preserves_state() const { return !blocks_.empty() && blocks_.front().next_master.defined(); }
  // After an update: takes the blocks that it wrote to, if it wrote to spare ones.
  void adopt_update();

 private:
  struct SpareBlock {
    torch::Tensor master, momentum;
  };

  ArenaOptions options_;
  std::vector<ArenaBlock> blocks_;
  std::vector<SpareBlock> spares_;  // empty, or one for each block
};

}  // namespace ssd
