#include "train/sgd.hpp"

#include <ATen/Parallel.h>

#include <array>
#include <atomic>

#include "comm/half.hpp"
#include "core/error.hpp"
#include "core/vector_clones.hpp"

namespace ssd {
namespace {

constexpr std::int64_t kChunk = 2048;  // elements converted at a time: stays in the first-level cache

struct Factors {
  double rate, momentum, decay, inverse_scale;
};

// One kind of number, from where it is read and to where it is written: the same place, unless the old one
// stays.
template <class Real>
struct Column {
  const Real* from;
  Real* to;
  Column at(std::int64_t offset) const { return {from + offset, to + offset}; }
};

// The arithmetic of the update in the dtype of the master weights.
template <class Real>
SSD_INLINE void update_range(Column<Real> weight, Column<Real> momentum, const Real* gradient,
                             std::int64_t count, Factors factors) {
  const auto rate = static_cast<Real>(factors.rate), keep = static_cast<Real>(factors.momentum),
             decay = static_cast<Real>(factors.decay), scale = static_cast<Real>(factors.inverse_scale);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const Real g = gradient[i] * scale + decay * weight.from[i];
    const Real m = keep * momentum.from[i] + g;
    momentum.to[i] = m;
    weight.to[i] = weight.from[i] - rate * m;
  }
}

SSD_VECTOR_CLONES void update(Column<float> w, Column<float> m, const float* g, std::int64_t count,
                              Factors factors) {
  update_range(w, m, g, count, factors);
}
SSD_VECTOR_CLONES void update(Column<double> w, Column<double> m, const double* g, std::int64_t count,
                              Factors factors) {
  update_range(w, m, g, count, factors);
}

const std::uint16_t* bits_of(const void* values) {
  return static_cast<const std::uint16_t*>(values);
}
std::uint16_t* bits_of(void* values) {
  return static_cast<std::uint16_t*>(values);
}
void to_floats(const c10::Half* values, float* out, std::int64_t count) {
  halves_to_floats(bits_of(values), out, static_cast<std::size_t>(count));
}
void to_floats(const c10::BFloat16* values, float* out, std::int64_t count) {
  bfloat16s_to_floats(bits_of(values), out, static_cast<std::size_t>(count));
}
void write_back(const float* master, c10::Half* weight, std::int64_t count) {
  floats_to_halves(master, 1, bits_of(weight), static_cast<std::size_t>(count));
}
SSD_VECTOR_CLONES void write_back(const float* master, c10::BFloat16* weight, std::int64_t count) {
  auto* out = bits_of(weight);
  for (std::int64_t i = 0; i < count; ++i) out[i] = float_to_bfloat16(master[i]);
}

// One pass over [begin, end): everything is read and written while it is in the cache.
template <class Real, class Gradient, class Weight>
void update_chunks(ArenaBlock& block, const torch::Tensor& gradients, const Factors& factors,
                   std::int64_t begin, std::int64_t end) {
  const auto column = [](const torch::Tensor& now, const torch::Tensor& next) {
    return Column<Real>{now.data_ptr<Real>(), (next.defined() ? next : now).data_ptr<Real>()};
  };
  const auto master = column(block.master, block.next_master);
  const auto momentum = column(block.momentum, block.next_momentum);
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
    update(master.at(at), momentum.at(at), values, count, factors);
    if constexpr (!std::is_same_v<Real, Weight>)
      write_back(master.to + at, block.weights.data_ptr<Weight>() + at, count);
  }
}

template <class Real, class Gradient, class Weight>
void update_block(ArenaBlock& block, const torch::Tensor& gradients, const SgdOptions& options,
                  const SgdStep& step) {
  const Factors decayed{step.learning_rate, options.momentum, options.weight_decay,
                        step.inverse_scale.item<float>()};
  auto undecayed = decayed;
  undecayed.decay = 0;
  at::parallel_for(0, block.master.numel(), 64 * kChunk, [&](std::int64_t begin, std::int64_t end) {
    const auto middle = std::clamp(block.decayed_count, begin, end);
    update_chunks<Real, Gradient, Weight>(block, gradients, decayed, begin, middle);
    update_chunks<Real, Gradient, Weight>(block, gradients, undecayed, middle, end);
  });
}

// By the dtype of the weights: that of the masters or a half.
template <class Gradient>
void update_float_block(ArenaBlock& block, const torch::Tensor& gradients, const SgdOptions& options,
                        const SgdStep& step) {
  switch (block.weights.scalar_type()) {
    case torch::kBFloat16:
      return update_block<float, Gradient, c10::BFloat16>(block, gradients, options, step);
    case torch::kHalf:
      return update_block<float, Gradient, c10::Half>(block, gradients, options, step);
    default:
      return update_block<float, Gradient, float>(block, gradients, options, step);
  }
}

// Whether some number has all bits of its exponent set: an infinity or a NaN.
template <class Bits>
SSD_INLINE bool any_not_finite_of(const Bits* values, std::int64_t count, Bits exponent) {
  Bits found = 0;
  for (std::int64_t i = 0; i < count; ++i) found |= static_cast<Bits>((values[i] & exponent) == exponent);
  return found != 0;
}
SSD_VECTOR_CLONES bool any_not_finite(const std::uint16_t* values, std::int64_t count,
                                      std::uint16_t exponent) {
  return any_not_finite_of(values, count, exponent);
}
SSD_VECTOR_CLONES bool any_not_finite(const std::uint32_t* values, std::int64_t count,
                                      std::uint32_t exponent) {
  return any_not_finite_of(values, count, exponent);
}
SSD_VECTOR_CLONES bool any_not_finite(const std::uint64_t* values, std::int64_t count,
                                      std::uint64_t exponent) {
  return any_not_finite_of(values, count, exponent);
}

template <class Bits>
bool any_not_finite_in(const torch::Tensor& gradients, Bits exponent) {
  const auto* values = static_cast<const Bits*>(gradients.const_data_ptr());
  std::atomic<bool> found{false};
  at::parallel_for(0, gradients.numel(), 64 * kChunk, [&](std::int64_t begin, std::int64_t end) {
    if (any_not_finite(values + begin, end - begin, exponent)) found = true;
  });
  return found;
}

bool has_overflow_on_cpu(const torch::Tensor& gradients) {
  switch (gradients.scalar_type()) {
    case torch::kHalf:
      return any_not_finite_in<std::uint16_t>(gradients, 0x7C00);
    case torch::kBFloat16:
      return any_not_finite_in<std::uint16_t>(gradients, 0x7F80);
    case torch::kFloat:
      return any_not_finite_in<std::uint32_t>(gradients, 0x7F800000);
    default:
      SSD_EXPECT(gradients.scalar_type() == torch::kDouble);
      return any_not_finite_in<std::uint64_t>(gradients, 0x7FF0000000000000);
  }
}

}  // namespace

void detect_overflow(const torch::Tensor& gradients, torch::Tensor& found_overflow) {
  if (gradients.is_cpu()) {
    if (has_overflow_on_cpu(gradients)) found_overflow.fill_(1);
    return;
  }
  // x * 0 is 0 for finite numbers and NaN for the others; a NaN survives the maximum.
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
  if (block.master.scalar_type() == torch::kDouble) {
    return update_block<double, double, double>(block, gradients, options, step);
  }
  switch (gradients.scalar_type()) {
    case torch::kFloat:
      return update_float_block<float>(block, gradients, options, step);
    case torch::kBFloat16:
      return update_float_block<c10::BFloat16>(block, gradients, options, step);
    case torch::kHalf:
      return update_float_block<c10::Half>(block, gradients, options, step);
    default:
      SSD_EXPECT(false);
  }
}

}  // namespace ssd
