#include "train/gradient_reducer.hpp"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <limits>
#include <utility>

#include "comm/half.hpp"
#include "core/error.hpp"
#include "core/phase.hpp"
#include "core/stopwatch.hpp"

namespace ssd {
namespace {

class CallbackHook : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit CallbackHook(std::function<void()> callback) : callback_(std::move(callback)) {}
  void operator()(const torch::autograd::Variable&) override { callback_(); }

 private:
  std::function<void()> callback_;
};

torch::ScalarType scalar_type_of(WireType type) {
  switch (type) {
    case WireType::float64:
      return torch::kDouble;
    case WireType::float32:
      return torch::kFloat;
    case WireType::bfloat16:
      return torch::kBFloat16;
    default:
      return torch::kHalf;
  }
}

WireType wire_type_of(torch::ScalarType type) {
  return type == torch::kDouble ? WireType::float64 : WireType::float32;
}

// The buffer that travels: the gradients' own memory where the element sizes agree.
torch::Tensor wire_buffer(const torch::Tensor& gradients, torch::ScalarType wire) {
  if (c10::elementSize(wire) == c10::elementSize(gradients.scalar_type())) return gradients.view(wire);
  return torch::zeros({gradients.numel()}, gradients.options().dtype(wire));
}

// wire = scale * gradients, in the dtype of the wire. The two may be the same memory.
void scale_into_wire(const torch::Tensor& gradients, double scale, torch::Tensor wire) {
  const auto from = gradients.scalar_type(), to = wire.scalar_type();
  const auto count = static_cast<std::size_t>(gradients.numel());
  if (from == to) {
    if (scale != 1) wire.mul_(scale);
  } else if (!gradients.is_cpu()) {
    wire.copy_(gradients * scale);
  } else if (from == torch::kBFloat16 && to == torch::kHalf) {
    bfloat16s_to_halves(static_cast<const std::uint16_t*>(gradients.data_ptr()), static_cast<float>(scale),
                        static_cast<std::uint16_t*>(wire.data_ptr()), count);
  } else if (from == torch::kFloat && to == torch::kHalf) {
    floats_to_halves(gradients.data_ptr<float>(), static_cast<float>(scale),
                     static_cast<std::uint16_t*>(wire.data_ptr()), count);
  } else {
    wire.copy_(gradients * scale);
  }
}

}  // namespace

GradientReducer::GradientReducer(ParameterArena& arena, GradientCommunicator* communicator,
                                 const ReducerOptions& options)
    : arena_(arena), communicator_(communicator) {
  for (std::size_t b = 0; b < arena.blocks().size(); ++b) {
    auto& block = arena.blocks()[b];
    if (communicator_ == nullptr) {
      averaged_.push_back(block.gradients);
      continue;
    }
    wire_types_.push_back(b == 0 ? options.wire_type : wire_type_of(block.master.scalar_type()));
    averaged_.push_back(wire_buffer(block.gradients, scalar_type_of(wire_types_.back())));
    std::vector<std::int64_t> entry_bytes;
    for (const auto& entry : block.entries) {
      entry_bytes.push_back(entry.count * static_cast<std::int64_t>(wire_type_bytes(wire_types_.back())));
    }
    for (const auto& [first, end] : plan_buckets(entry_bytes, options.buckets)) {
      const auto offset = block.entries[first].offset;
      const auto stop = end < block.entries.size() ? block.entries[end].offset : block.gradients.numel();
      const auto index = buckets_.size();
      buckets_.push_back({b, offset, stop - offset, end - first, end - first});
      for (auto i = first; i < end; ++i) {
        torch::autograd::impl::set_post_acc_grad_hooks(
            block.entries[i].parameter,
            std::make_unique<CallbackHook>([this, index] { on_gradient_ready(index); }));
      }
    }
  }
}

GradientReducer::~GradientReducer() {
  if (communicator_ == nullptr) return;
  for (auto& block : arena_.blocks()) {
    for (auto& entry : block.entries)
      torch::autograd::impl::set_post_acc_grad_hooks(entry.parameter, nullptr);
  }
}

void GradientReducer::begin_step() {
  next_bucket_ = 0;
  for (auto& bucket : buckets_) bucket.waiting_for = bucket.entry_count;
}

void GradientReducer::on_gradient_ready(std::size_t bucket) {
  SSD_EXPECT(buckets_[bucket].waiting_for > 0);
  --buckets_[bucket].waiting_for;
  start_full_buckets();
}

void GradientReducer::start_full_buckets() {
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].waiting_for == 0)
    start(buckets_[next_bucket_++]);
}

void GradientReducer::start(const PlacedBucket& bucket) {
  torch::NoGradGuard no_grad;
  auto wire = averaged_[bucket.block].slice(0, bucket.offset, bucket.offset + bucket.count);
  scale_into_wire(
      arena_.blocks()[bucket.block].gradients.slice(0, bucket.offset, bucket.offset + bucket.count),
      communicator_->prescale(), wire);
  communicator_->start_average(wire.data_ptr(), static_cast<std::size_t>(bucket.count),
                               wire_types_[bucket.block]);
}

void GradientReducer::finish_step() {
  if (communicator_ == nullptr) return;
  // A parameter without a gradient in this step never calls its hook; its part of the bucket is 0.
  while (next_bucket_ < buckets_.size()) start(buckets_[next_bucket_++]);
  const Stopwatch time;
  {
    const WaitForRanksMark mark;
    communicator_->finish();
  }
  const bool is_on_cpu = arena_.blocks().front().gradients.is_cpu();
  exposed_ms_ = is_on_cpu ? 1000 * time.seconds() : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace ssd
