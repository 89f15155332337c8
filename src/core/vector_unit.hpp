// The vector instructions that code written for certain processors chooses from while it runs. Such code
// gives what its form for any processor gives, to the last bit; tests run every form that is_usable.
// For loops that the compiler vectorises by itself vector_clones.hpp is enough.
#pragma once

namespace ssd {

enum class VectorUnit { any, avx2, avx512 };

// Before functions that are called for this unit alone.
#define SSD_TARGET_AVX2 __attribute__((target("avx2")))
#define SSD_TARGET_AVX512 __attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl")))

inline bool is_usable([[maybe_unused]] VectorUnit unit) {
#if defined(__x86_64__)
  if (unit == VectorUnit::avx2) return __builtin_cpu_supports("avx2");
  if (unit == VectorUnit::avx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
#endif
  return unit == VectorUnit::any;
}

// The best one of this processor.
inline VectorUnit vector_unit() {
  return is_usable(VectorUnit::avx512) ? VectorUnit::avx512
         : is_usable(VectorUnit::avx2) ? VectorUnit::avx2
                                       : VectorUnit::any;
}

}  // namespace ssd
