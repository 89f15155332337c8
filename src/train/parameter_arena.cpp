#include "train/parameter_arena.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "model/model_tensors.hpp"

namespace ssd {
namespace {

constexpr std::int64_t kAlignmentBytes = 64;  // a cache line, and the widest vector

torch::ScalarType master_type_of(torch::ScalarType compute_type) {
  return compute_type == torch::kDouble ? torch::kDouble : torch::kFloat;
}

// The view of a range of a flat tensor in a shape, row-major or channels last.
torch::Tensor view_of(const torch::Tensor& flat, const ArenaEntry& entry, bool channels_last) {
  const auto sizes = entry.parameter.sizes();
  const bool is_image_like = channels_last && sizes.size() == 4;
  const auto row_major = c10::contiguous_strides(sizes);
  const auto strides = is_image_like ? c10::get_channels_last_strides_2d(sizes)
                                     : std::vector<std::int64_t>(row_major.begin(), row_major.end());
  return flat.as_strided(sizes, strides, flat.storage_offset() + entry.offset);
}

void lay_out(ArenaBlock& block, std::int64_t element_bytes) {
  std::stable_partition(block.entries.begin(), block.entries.end(),
                        [](const ArenaEntry& entry) { return entry.has_weight_decay; });
  const std::int64_t step = kAlignmentBytes / element_bytes;
  std::int64_t offset = 0;
  for (auto& entry : block.entries) {
    entry.offset = offset;
    offset += (entry.count + step - 1) / step * step;
    if (entry.has_weight_decay) block.decayed_count = offset;
  }
}

std::int64_t block_size(const ArenaBlock& block, std::int64_t element_bytes) {
  const std::int64_t step = kAlignmentBytes / element_bytes;
  const auto& last = block.entries.back();
  return last.offset + (last.count + step - 1) / step * step;
}

void allocate(ArenaBlock& block, torch::ScalarType compute_type, bool channels_last) {
  const auto master_type = master_type_of(compute_type);
  const auto element_bytes = static_cast<std::int64_t>(c10::elementSize(compute_type));
  lay_out(block, element_bytes);
  const auto count = block_size(block, element_bytes);
  const auto options = block.entries.front().parameter.options().requires_grad(false);
  block.master = torch::zeros({count}, options.dtype(master_type));
  block.momentum = torch::zeros({count}, options.dtype(master_type));
  block.gradients = torch::zeros({count}, options.dtype(compute_type));
  block.weights =
      master_type == compute_type ? block.master : torch::zeros({count}, options.dtype(compute_type));
  for (auto& entry : block.entries) {
    view_of(block.master, entry, channels_last).copy_(entry.parameter);
    entry.parameter.set_data(view_of(block.weights, entry, channels_last));
    entry.parameter.mutable_grad() = view_of(block.gradients, entry, channels_last);
  }
}

}  // namespace

ParameterArena::ParameterArena(Ssd300& model, const ArenaOptions& options) : options_(options) {
  torch::NoGradGuard no_grad;
  ArenaBlock convolutions, norms;
  for (auto& [name, tensor, is_parameter, is_of_batch_norm] : model_tensors(model)) {
    if (is_parameter) {
      auto& block = is_of_batch_norm ? norms : convolutions;
      block.entries.push_back({name, tensor, 0, tensor.numel(), tensor.dim() > 1});
    } else if (tensor.is_floating_point()) {
      tensor.set_data(tensor.to(master_type_of(options.compute_type)));
    }
  }
  for (auto* block : {&convolutions, &norms}) std::reverse(block->entries.begin(), block->entries.end());
  allocate(convolutions, options.compute_type, options.channels_last);
  allocate(norms, master_type_of(options.compute_type), false);
  blocks_ = {std::move(convolutions), std::move(norms)};
  copy_masters_to_weights();
}

void ParameterArena::zero_gradients() {
  for (auto& block : blocks_) block.gradients.zero_();
}

void ParameterArena::copy_masters_to_weights() {
  torch::NoGradGuard no_grad;
  for (auto& block : blocks_) {
    if (!block.weights.is_same(block.master)) block.weights.copy_(block.master);
  }
}

void ParameterArena::reserve_spare_blocks() {
  for (const auto& block : blocks_) {
    SSD_EXPECT(block.master.is_cpu());
    spares_.push_back({torch::zeros_like(block.master), torch::zeros_like(block.momentum)});
  }
}

void ParameterArena::preserve_state() {
  SSD_EXPECT(spares_.size() == blocks_.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    blocks_[b].next_master = spares_[b].master;
    blocks_[b].next_momentum = spares_[b].momentum;
  }
}

void ParameterArena::adopt_update() {
  torch::NoGradGuard no_grad;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    auto& block = blocks_[b];
    if (!block.next_master.defined()) continue;
    const bool computes_with_master = block.weights.is_same(block.master);
    spares_[b] = {block.master, block.momentum};
    block.master = std::exchange(block.next_master, {});
    block.momentum = std::exchange(block.next_momentum, {});
    if (!computes_with_master) continue;
    block.weights = block.master;
    for (auto& entry : block.entries) {
      entry.parameter.set_data(view_of(block.weights, entry, options_.channels_last && b == 0));
    }
  }
}

torch::Tensor ParameterArena::master_of(const ArenaBlock& block, const ArenaEntry& entry) const {
  return view_of(block.master, entry, options_.channels_last);
}

torch::Tensor ParameterArena::momentum_of(const ArenaBlock& block, const ArenaEntry& entry) const {
  return view_of(block.momentum, entry, options_.channels_last);
}

}  // namespace ssd
