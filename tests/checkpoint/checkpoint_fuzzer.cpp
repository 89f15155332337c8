// The checkpoint reader under libFuzzer: built by Clang with -DSSD_FUZZ=ON, run as
// checkpoint_fuzzer FOLDER -max_total_time=600 -malloc_limit_mb=64, FOLDER with the small files of
// tests/data.
#include <cstddef>
#include <cstdint>
#include <span>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/checkpoint_item.hpp"
#include "checkpoint/state_dict.hpp"
#include "core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const ssd::CheckpointItem root("fuzz.pt",
                                   ssd::read_checkpoint_bytes(std::as_bytes(std::span(data, size))));
    for (const auto& [name, tensor] : ssd::state_dict_of(root)) {
      if (tensor.elements() < 1 << 20) ssd::contiguous_bytes(tensor);
    }
  } catch (const ssd::Error&) {
  }
  return 0;
}
