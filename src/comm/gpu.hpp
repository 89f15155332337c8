// The GPUs that this process sees, and memory of theirs. In builds without CUDA there are none; then all but
// the count throw Error. Local; LibraryError where CUDA fails.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "comm/comm_buffer.hpp"

namespace ssd {

int visible_gpu_count();                // 0 also where there is no driver
std::string gpu_pci_id(int index);      // "0000:1b:00.0"
std::size_t free_gpu_bytes(int index);  // makes it the current device

// Ordered with the default stream (NcclOptions::compute_stream null).
std::unique_ptr<CommBuffer> make_gpu_buffer(std::size_t bytes, int index);

}  // namespace ssd
