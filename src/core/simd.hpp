// Vector loops are written once, with Google Highway, and compiled for each vector unit that a processor may
// have; the best one is chosen when the program runs. Every unit gives the same bits: loops do integer
// arithmetic, or floating point in the order of the scalar form without contraction (-ffp-contract=off).
// tests/support/simd_targets.hpp runs a test on every unit of the machine.
//
// A source file with such loops links Ssd::simd and begins with
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "image/color.cpp"  // itself: it is compiled once for each unit
//   #include <hwy/foreach_target.h>
//   #include <hwy/highway.h>
#pragma once

namespace ssd {

// Leaves out the vector units above the one that the environment variable SSD_CPU_TARGETS names: sse4, avx2
// or avx512, to see what other processors will see. Unset or empty: all, as on Arm with any of them. Throws
// UsageError for another name. To be called before the first vector loop runs, by the main thread.
void limit_simd_targets();

}  // namespace ssd
