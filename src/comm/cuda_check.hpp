// The checks of CUDA's and NCCL's return codes, and move-only handles.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "core/error.hpp"

namespace ssd::detail {

inline void check_cuda(cudaError_t code, const char* call) {
  if (code != cudaSuccess) throw LibraryError("CUDA", call, cudaGetErrorString(code));
}

inline void check_nccl(ncclResult_t code, const char* call) {
  // ncclInProgress is no error with a non-blocking communicator: the caller polls.
  if (code != ncclSuccess && code != ncclInProgress) throw LibraryError("NCCL", call, ncclGetErrorString(code));
}

}  // namespace ssd::detail

#define SSD_CUDA_CALL(function, ...) ::ssd::detail::check_cuda(function(__VA_ARGS__), #function)
#define SSD_NCCL_CALL(function, ...) ::ssd::detail::check_nccl(function(__VA_ARGS__), #function)
