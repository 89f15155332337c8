// The main of tests that run alone. No test at all is a failure; nothing but skipped tests is exit code 77.
#include <gtest/gtest.h>

#include "core/simd.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  ssd::limit_simd_targets();
  const int result = RUN_ALL_TESTS();
  const auto* unit = testing::UnitTest::GetInstance();
  if (unit->test_to_run_count() == 0) {
    std::fprintf(stderr, "no test was run\n");
    return 1;
  }
  if (result == 0 && unit->skipped_test_count() == unit->test_to_run_count()) return 77;
  return result;
}
