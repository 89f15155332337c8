// How far float32's rounding carries a computation, found in float64 (Monte Carlo arithmetic: Parker 1997).
// While a RoundingNoise lives, the results in float64 of ATen's operations that add many terms carry errors
// of random sign, as large as float32 makes them whatever the kernel, the vector unit or the order of
// additions. The distance between a run with it and one without is float32's distance.
//
// The size: n additions of terms of random sign one after another round partial sums that grow as sqrt(k),
// each by u / sqrt(3) on average, u = 2^-24. Their errors come to u sqrt(n / 6) of the results' root mean
// square. Lanes, blocks and trees have shorter chains, so less. Rounding of what is multiplied, and of
// additions, ReLU and BatchNorm between convolutions, is u of a value: less than the error of a convolution
// (n >= 64) before it.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace ssd::test {

constexpr double kFloatUnit = 0x1p-24;
// For gradients. ReLU, maxima and the choice of hard negatives decide by values that may be nearly equal, and
// float32 decides otherwise than float64 by chance. Noise of eight times float32's decides otherwise eight
// times as often.
constexpr double kFloatUnitForDecisions = 8 * kFloatUnit;
// How much farther from float64 a float32 run may be, in Euclidean distance, than a run with noise is. The
// noise is that of the longest chain of additions already; this is for values of unlike size in one result.
constexpr double kRoundingSafety = 4;

// One at a time; not with ATen on several threads.
class RoundingNoise {
 public:
  // unit: of the rounding, kFloatUnit or a multiple. seed: of the signs.
  RoundingNoise(double unit, std::uint64_t seed);
  ~RoundingNoise();
  RoundingNoise(const RoundingNoise&) = delete;
  RoundingNoise& operator=(const RoundingNoise&) = delete;

 private:
  std::uint64_t handle_;
};

}  // namespace ssd::test
