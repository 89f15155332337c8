#include "core/simd.hpp"

#include <hwy/highway.h>

#include <cstdlib>
#include <string_view>

#include "core/error.hpp"

namespace ssd {

void limit_simd_targets() {
  const char* value = std::getenv("SSD_CPU_TARGETS");
  if (value == nullptr || *value == '\0') return;
  const std::string_view name = value;
  // A better unit has a lower bit.
  if (name == "sse4") {
    hwy::DisableTargets(HWY_SSE4 - 1);
  } else if (name == "avx2") {
    hwy::DisableTargets(HWY_AVX2 - 1);
  } else if (name != "avx512") {
    throw UsageError(fmt::format("SSD_CPU_TARGETS={}: must be sse4, avx2 or avx512, or not set", name));
  }
}

}  // namespace ssd
