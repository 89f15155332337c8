// SSD_VECTOR_CLONES before a function: compiled once for AVX-512, once for AVX2 and once for any processor,
// the version chosen when the program starts. What it calls takes part only if it is inlined: SSD_INLINE. The
// results are the same, since nothing is contracted to fused multiply-add (-ffp-contract=off) and the order
// of additions is the program's.
#pragma once

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define SSD_VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SSD_VECTOR_CLONES
#endif
#define SSD_INLINE inline __attribute__((always_inline))
