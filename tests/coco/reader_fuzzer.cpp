// The readers under libFuzzer: built by Clang with -DSSD_FUZZ=ON, run as reader_fuzzer FOLDER
// -max_total_time=600. The first byte chooses the reader.
#include <cstddef>
#include <cstdint>
#include <string>

#include "reader_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    ssd::test::check_results_text(text);
  } else {
    ssd::test::check_annotations_text(text);
  }
  return 0;
}
