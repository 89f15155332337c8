#include "model/batch_norm_kernels.hpp"

#include <algorithm>
#include <vector>

#include "core/bfloat16.hpp"
#include "core/vector_clones.hpp"

namespace ssd {
namespace {

constexpr std::size_t kBlockRows = 128;  // summed in float before they are added in double

SSD_INLINE float load(const BFloat16Bits& value) {
  return bfloat16_to_float(value);
}
SSD_INLINE float load(const float& value) {
  return value;
}
SSD_INLINE double load(const double& value) {
  return value;
}
SSD_INLINE void store(BFloat16Bits& to, float value) {
  to = float_to_bfloat16(value);
}
SSD_INLINE void store(float& to, float value) {
  to = value;
}
SSD_INLINE void store(double& to, double value) {
  to = value;
}

// Calls add_row(row, first, second) for each row and adds what it left in first and second to the doubles.
template <class Real, class AddRow>
SSD_INLINE void sum_in_blocks(std::size_t rows, std::size_t channels, double* first_sums, double* second_sums,
                              AddRow add_row) {
  std::vector<Real> block(2 * channels);
  Real* __restrict first = block.data();
  Real* __restrict second = block.data() + channels;
  for (std::size_t begin = 0; begin < rows; begin += kBlockRows) {
    std::fill(block.begin(), block.end(), Real{0});
    const std::size_t end = std::min(rows, begin + kBlockRows);
    for (std::size_t row = begin; row < end; ++row) add_row(row, first, second);
    for (std::size_t c = 0; c < channels; ++c) first_sums[c] += double{first[c]};
    for (std::size_t c = 0; c < channels; ++c) second_sums[c] += double{second[c]};
  }
}

template <class Value>
SSD_INLINE void moments(const Value* x, std::size_t rows, std::size_t channels, const RealOf<Value>* shift,
                        double* sums, double* squares) {
  using Real = RealOf<Value>;
  sum_in_blocks<Real>(
      rows, channels, sums, squares,
      [=](std::size_t row, Real* __restrict sum, Real* __restrict square) __attribute__((always_inline)) {
        const Value* __restrict at = x + row * channels;
        for (std::size_t c = 0; c < channels; ++c) {
          const Real value = load(at[c]) - shift[c];
          sum[c] += value;
          square[c] += value * value;
        }
      });
}

template <bool kHasResidual, bool kHasRelu, class Value>
SSD_INLINE void normalise(const Value* x, const Value* residual, std::size_t rows, std::size_t channels,
                          const RealOf<Value>* scale, const RealOf<Value>* offset, Value* y) {
  using Real = RealOf<Value>;
  for (std::size_t row = 0; row < rows; ++row) {
    const Value* __restrict from = x + row * channels;
    const Value* __restrict add = kHasResidual ? residual + row * channels : nullptr;
    Value* __restrict to = y + row * channels;
    for (std::size_t c = 0; c < channels; ++c) {
      Real value = load(from[c]) * scale[c] + offset[c];
      if constexpr (kHasResidual) value += load(add[c]);
      if constexpr (kHasRelu) value = value < 0 ? Real{0} : value;  // a NaN stays one
      store(to[c], value);
    }
  }
}

template <bool kHasRelu, class Value>
SSD_INLINE void gradient_sums(const Value* dy, const Value* y, const Value* x, std::size_t rows,
                              std::size_t channels, const RealOf<Value>* mean, double* sums,
                              double* products) {
  using Real = RealOf<Value>;
  sum_in_blocks<Real>(
      rows, channels, sums, products,
      [=](std::size_t row, Real* __restrict sum, Real* __restrict product) __attribute__((always_inline)) {
        const Value* __restrict gradient = dy + row * channels;
        const Value* __restrict output = kHasRelu ? y + row * channels : nullptr;
        const Value* __restrict input = x + row * channels;
        for (std::size_t c = 0; c < channels; ++c) {
          Real g = load(gradient[c]);
          if constexpr (kHasRelu) g = load(output[c]) > 0 ? g : Real{0};
          sum[c] += g;
          product[c] += g * (load(input[c]) - mean[c]);
        }
      });
}

template <bool kHasRelu, bool kHasResidual, class Value>
SSD_INLINE void input_gradient(const Value* dy, const Value* y, const Value* x, std::size_t rows,
                               std::size_t channels, const InputGradientFactors<Value>& factors, Value* dx,
                               Value* d_residual) {
  using Real = RealOf<Value>;
  const Real *a = factors.a, *b = factors.b, *d = factors.d, *mean = factors.mean;
  for (std::size_t row = 0; row < rows; ++row) {
    const Value* __restrict gradient = dy + row * channels;
    const Value* __restrict output = kHasRelu ? y + row * channels : nullptr;
    const Value* __restrict input = x + row * channels;
    Value* __restrict to = dx + row * channels;
    Value* __restrict to_residual = kHasResidual ? d_residual + row * channels : nullptr;
    for (std::size_t c = 0; c < channels; ++c) {
      Real g = load(gradient[c]);
      if constexpr (kHasRelu) g = load(output[c]) > 0 ? g : Real{0};
      if constexpr (kHasResidual) store(to_residual[c], g);
      store(to[c], a[c] * g + b[c] * (load(input[c]) - mean[c]) + d[c]);
    }
  }
}

template <class Value>
SSD_INLINE void normalise_any(const Value* x, const Value* residual, std::size_t rows, std::size_t channels,
                              const RealOf<Value>* scale, const RealOf<Value>* offset, bool with_relu,
                              Value* y) {
  if (residual != nullptr) {
    with_relu ? normalise<true, true>(x, residual, rows, channels, scale, offset, y)
              : normalise<true, false>(x, residual, rows, channels, scale, offset, y);
  } else {
    with_relu ? normalise<false, true>(x, residual, rows, channels, scale, offset, y)
              : normalise<false, false>(x, residual, rows, channels, scale, offset, y);
  }
}

template <class Value>
SSD_INLINE void gradient_sums_any(const Value* dy, const Value* y, const Value* x, std::size_t rows,
                                  std::size_t channels, const RealOf<Value>* mean, double* sums,
                                  double* products) {
  y != nullptr ? gradient_sums<true>(dy, y, x, rows, channels, mean, sums, products)
               : gradient_sums<false>(dy, y, x, rows, channels, mean, sums, products);
}

template <class Value>
SSD_INLINE void input_gradient_any(const Value* dy, const Value* y, const Value* x, std::size_t rows,
                                   std::size_t channels, const InputGradientFactors<Value>& factors,
                                   Value* dx, Value* d_residual) {
  if (d_residual != nullptr) {
    y != nullptr ? input_gradient<true, true>(dy, y, x, rows, channels, factors, dx, d_residual)
                 : input_gradient<false, true>(dy, y, x, rows, channels, factors, dx, d_residual);
  } else {
    y != nullptr ? input_gradient<true, false>(dy, y, x, rows, channels, factors, dx, d_residual)
                 : input_gradient<false, false>(dy, y, x, rows, channels, factors, dx, d_residual);
  }
}

}  // namespace

// One specialisation for each type, each in several versions.

template <>
SSD_VECTOR_CLONES void add_moments<float>(const float* x, std::size_t rows, std::size_t channels,
                                          const float* shift, double* sums, double* squares) {
  moments(x, rows, channels, shift, sums, squares);
}
template <>
SSD_VECTOR_CLONES void normalise_rows<float>(const float* x, const float* residual, std::size_t rows,
                                             std::size_t channels, const float* scale, const float* offset,
                                             bool with_relu, float* y) {
  normalise_any(x, residual, rows, channels, scale, offset, with_relu, y);
}
template <>
SSD_VECTOR_CLONES void add_gradient_sums<float>(const float* dy, const float* y, const float* x,
                                                std::size_t rows, std::size_t channels, const float* mean,
                                                double* sums, double* products) {
  gradient_sums_any(dy, y, x, rows, channels, mean, sums, products);
}
template <>
SSD_VECTOR_CLONES void write_input_gradient<float>(const float* dy, const float* y, const float* x,
                                                   std::size_t rows, std::size_t channels,
                                                   const InputGradientFactors<float>& factors, float* dx,
                                                   float* d_residual) {
  input_gradient_any(dy, y, x, rows, channels, factors, dx, d_residual);
}

template <>
SSD_VECTOR_CLONES void add_moments<double>(const double* x, std::size_t rows, std::size_t channels,
                                           const double* shift, double* sums, double* squares) {
  moments(x, rows, channels, shift, sums, squares);
}
template <>
SSD_VECTOR_CLONES void normalise_rows<double>(const double* x, const double* residual, std::size_t rows,
                                              std::size_t channels, const double* scale, const double* offset,
                                              bool with_relu, double* y) {
  normalise_any(x, residual, rows, channels, scale, offset, with_relu, y);
}
template <>
SSD_VECTOR_CLONES void add_gradient_sums<double>(const double* dy, const double* y, const double* x,
                                                 std::size_t rows, std::size_t channels, const double* mean,
                                                 double* sums, double* products) {
  gradient_sums_any(dy, y, x, rows, channels, mean, sums, products);
}
template <>
SSD_VECTOR_CLONES void write_input_gradient<double>(const double* dy, const double* y, const double* x,
                                                    std::size_t rows, std::size_t channels,
                                                    const InputGradientFactors<double>& factors, double* dx,
                                                    double* d_residual) {
  input_gradient_any(dy, y, x, rows, channels, factors, dx, d_residual);
}

template <>
SSD_VECTOR_CLONES void add_moments<BFloat16Bits>(const BFloat16Bits* x, std::size_t rows,
                                                 std::size_t channels, const float* shift, double* sums,
                                                 double* squares) {
  moments(x, rows, channels, shift, sums, squares);
}
template <>
SSD_VECTOR_CLONES void normalise_rows<BFloat16Bits>(const BFloat16Bits* x, const BFloat16Bits* residual,
                                                    std::size_t rows, std::size_t channels,
                                                    const float* scale, const float* offset, bool with_relu,
                                                    BFloat16Bits* y) {
  normalise_any(x, residual, rows, channels, scale, offset, with_relu, y);
}
template <>
SSD_VECTOR_CLONES void add_gradient_sums<BFloat16Bits>(const BFloat16Bits* dy, const BFloat16Bits* y,
                                                       const BFloat16Bits* x, std::size_t rows,
                                                       std::size_t channels, const float* mean, double* sums,
                                                       double* products) {
  gradient_sums_any(dy, y, x, rows, channels, mean, sums, products);
}
template <>
SSD_VECTOR_CLONES void write_input_gradient<BFloat16Bits>(const BFloat16Bits* dy, const BFloat16Bits* y,
                                                          const BFloat16Bits* x, std::size_t rows,
                                                          std::size_t channels,
                                                          const InputGradientFactors<BFloat16Bits>& factors,
                                                          BFloat16Bits* dx, BFloat16Bits* d_residual) {
  input_gradient_any(dy, y, x, rows, channels, factors, dx, d_residual);
}

}  // namespace ssd
