// Runs a test on every vector unit of this machine (core/simd.hpp). The test links Ssd::simd.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

namespace ssd::test {

// Units above the one of SSD_CPU_TARGETS are left out. Not thread safe.
template <class Body>
void on_each_simd_target(const Body& body) {
  const auto targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_FALSE(targets.empty());
  for (const std::int64_t target : targets) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace ssd::test
