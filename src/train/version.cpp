#include "train/version.hpp"

#include <fmt/format.h>
#include <torch/version.h>

#include "comm/mpi_session.hpp"
#include "record/hdf5.hpp"
#if SSD_WITH_CUDA
#include "comm/nccl_gradient_communicator.hpp"
#endif

namespace ssd {

std::string version_text(const std::string& program) {
  std::string text = fmt::format("{} {}\n", program, SSD_VERSION);
  text += fmt::format("LibTorch {}\n", TORCH_VERSION);
  text += fmt::format("MPI {}\n", mpi_library_version());
  text += fmt::format("HDF5 {}\n", hdf5_versions());
#if SSD_WITH_CUDA
  const int nccl = nccl_version();
  text += fmt::format("NCCL {}.{}.{}\n", nccl / 10000, nccl / 100 % 100, nccl % 100);
#else
  text += "without CUDA\n";
#endif
  return text;
}

}  // namespace ssd
