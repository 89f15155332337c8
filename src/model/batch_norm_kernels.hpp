// The passes over memory of a BatchNorm in training with the ReLU and the residual addition that follow it,
// on the CPU: two for the forward (statistics; normalise, add, cut off) and two for the backward (sums;
// gradient of the input), where separate operations make up to five and four. Ioffe and Szegedy 2015,
// algorithm 1 and section 3. Plain memory: maps are (rows, channels), row-major, which is a channels-last (N,
// C, H, W) with rows = N * H * W. Value is float, double or BFloat16 (raw bits); arithmetic is in Real:
// double for double, else float. Sums over rows are made in float over blocks and in double over the blocks:
// the same bits for any number of threads, as long as the caller cuts the rows in the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ssd {

using BFloat16Bits = std::uint16_t;

template <class Value>
using RealOf = std::conditional_t<std::is_same_v<Value, double>, double, float>;

// sums[c] += x - shift, squares[c] += (x - shift)^2 over the rows. A shift near the mean keeps the digits.
template <class Value>
void add_moments(const Value* x, std::size_t rows, std::size_t channels, const RealOf<Value>* shift,
                 double* sums, double* squares);

// y = max(0, x * scale + offset + residual). residual: null for none; with_relu false leaves out the maximum.
template <class Value>
void normalise_rows(const Value* x, const Value* residual, std::size_t rows, std::size_t channels,
                    const RealOf<Value>* scale, const RealOf<Value>* offset, bool with_relu, Value* y);

// With g = dy where y > 0, else 0 (y null: g = dy): sums[c] += g, products[c] += g * (x - mean).
template <class Value>
void add_gradient_sums(const Value* dy, const Value* y, const Value* x, std::size_t rows,
                       std::size_t channels, const RealOf<Value>* mean, double* sums, double* products);

// dx = a * g + b * (x - mean) + d, by channel. d_residual, if it is not null, becomes g.
template <class Value>
struct InputGradientFactors {
  const RealOf<Value>*a, *b, *d, *mean;
};
template <class Value>
void write_input_gradient(const Value* dy, const Value* y, const Value* x, std::size_t rows,
                          std::size_t channels, const InputGradientFactors<Value>& factors, Value* dx,
                          Value* d_residual);

}  // namespace ssd
