#include "train/sgd.hpp"

#include <ATen/Parallel.h>

#include <array>

#include "comm/half.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

constexpr std::int64_t kChunk = 2048;  // elements converted at a time: stays in the first-level cache

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define SSD_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SSD_VECTOR_CLONES
#endif

struct Factors {
  double rate, momentum, decay, inverse_scale;
};

// The arithmetic of the update in the dtype of the master weights.
template <class Real>
inline __attribute__((always_inline)) void update_range(Real* weight, Real* momentum, const Real* gradient,
                                                        std::int64_t count, Factors factors) {
  const auto rate = static_cast<Real>(factors.rate), keep = static_cast<Real>(factors.momentum),
             decay = static_cast<Real>(factors.decay), scale = static_cast<Real>(factors.inverse_scale);
  for (std::int64_t i = 0; i < count; ++i) {
    const Real g = gradient[i] * scale + decay * weight[i];
    momentum[i] = keep * momentum[i] + g;
    weight[i] -= rate * momentum[i];
  }
}

SSD_VECTOR_CLONES void update(float* w, float* m, const float* g, std::int64_t count, Factors factors) {
  update_range(w, m, g, count, factors);
}
SSD_VECTOR_CLONES void update(double* w, double* m, const double* g, std::int64_t count, Factors factors) {
  update_range(w, m, g, count, factors);
}

const std::uint16_t* bits_of(const void* values) {
  return static_cast<const std::uint16_t*>(values);
}
void to_floats(const c10::Half* values, float* out, std::int64_t count) {
  halves_to_floats(bits_of(values), out, static_cast<std::size_t>(count));
}
void to_floats(const c10::BFloat16* values, float* out, std::int64_t count) {
  bfloat16s_to_floats(bits_of(values), out, static_cast<std::size_t>(count));
}

template <class Real, class Gradient>
void update_chunks(ArenaBlock& block, const torch::Tensor& gradients, const Factors& factors,
                   std::int64_t begin, std::int64_t end) {
  auto* weight = block.master.data_ptr<Real>();
  auto* momentum = block.momentum.data_ptr<Real>();
  const auto* gradient = gradients.data_ptr<Gradient>();
  std::array<Real, kChunk> converted;
  for (auto at = begin; at < end; at += kChunk) {
    const auto count = std::min(kChunk, end - at);
    const Real* values = nullptr;
    if constexpr (std::is_same_v<Real, Gradient>) {
      values = gradient + at;
    } else {
      to_floats(gradient + at, converted.data(), count);
      values = converted.data();
    }
    update(weight + at, momentum + at, values, count, factors);
  }
}

template <class Real, class Gradient>
void update_block(ArenaBlock& block, const torch::Tensor& gradients, const SgdOptions& options,
                  const SgdStep& step) {
  const Factors decayed{step.learning_rate, options.momentum, options.weight_decay,
                        step.inverse_scale.item<float>()};
  auto undecayed = decayed;
  undecayed.decay = 0;
  at::parallel_for(0, block.master.numel(), 64 * kChunk, [&](std::int64_t begin, std::int64_t end) {
    const auto middle = std::clamp(block.decayed_count, begin, end);
    update_chunks<Real, Gradient>(block, gradients, decayed, begin, middle);
    update_chunks<Real, Gradient>(block, gradients, undecayed, middle, end);
  });
  if (!block.weights.is_same(block.master)) block.weights.copy_(block.master);
}

}  // namespace

void detect_overflow(const torch::Tensor& gradients, torch::Tensor& found_overflow) {
  // x * 0 is 0 for finite numbers and NaN for the others; a NaN survives the sum.
  const auto marker = gradients.abs().amax().mul(0).to(torch::kFloat);
  found_overflow.logical_or_(marker.isnan());
}

void sgd_update_by_operations(ArenaBlock& block, const torch::Tensor& gradients, const SgdOptions& options,
                              const SgdStep& step) {
  torch::NoGradGuard no_grad;
  const auto type = block.master.scalar_type();
  auto g = gradients.to(type) * step.inverse_scale.to(type);
  g.slice(0, 0, block.decayed_count)
      .add_(block.master.slice(0, 0, block.decayed_count), options.weight_decay);
  const auto keep = step.found_overflow != 0;
  const auto momentum = block.momentum * options.momentum + g;
  block.momentum.copy_(torch::where(keep, block.momentum, momentum));
  block.master.copy_(torch::where(keep, block.master, block.master - step.learning_rate * momentum));
  if (!block.weights.is_same(block.master)) block.weights.copy_(block.master);
}

void sgd_update(ArenaBlock& block, const torch::Tensor& gradients, const SgdOptions& options,
                const SgdStep& step) {
  torch::NoGradGuard no_grad;
  SSD_EXPECT(gradients.numel() == block.master.numel() && gradients.is_contiguous());
  if (!block.master.is_cpu()) return sgd_update_by_operations(block, gradients, options, step);
  if (step.found_overflow.item<float>() != 0) return;
  if (block.master.scalar_type() == torch::kDouble)
    return update_block<double, double>(block, gradients, options, step);
  switch (gradients.scalar_type()) {
    case torch::kFloat:
      return update_block<float, float>(block, gradients, options, step);
    case torch::kBFloat16:
      return update_block<float, c10::BFloat16>(block, gradients, options, step);
    case torch::kHalf:
      return update_block<float, c10::Half>(block, gradients, options, step);
    default:
      SSD_EXPECT(false);
  }
}

}  // namespace ssd
