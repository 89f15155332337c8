// NCCL itself on GPUs, one for each rank: the contract of gradient_communicator_test.cpp. Skipped where there
// are too few GPUs.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "comm/communicator_under_test.hpp"
#include "comm/nccl_gradient_communicator.hpp"

namespace ssd::test {
namespace {

void check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

class NcclUnderTest : public CommunicatorUnderTest {
 public:
  explicit NcclUnderTest(const MpiComm& world) : world_(world), device_(world.split_by_node().rank()) {
    check(cudaSetDevice(device_));
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~NcclUnderTest() override {
    for (auto* buffer : buffers_) cudaFree(buffer);
    cudaStreamDestroy(stream_);
  }

  std::unique_ptr<GradientCommunicator> make() override {
    NcclOptions options;
    options.device = device_;
    options.compute_stream = stream_;
    return make_nccl_gradient_communicator(world_, options);
  }
  void* allocate(std::size_t bytes) override {
    check(cudaMalloc(&buffers_.emplace_back(nullptr), bytes));
    return buffers_.back();
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
    check(cudaStreamSynchronize(stream_));
  }

 private:
  const MpiComm& world_;
  int device_;
  cudaStream_t stream_ = nullptr;
  std::vector<void*> buffers_;
};

std::unique_ptr<CommunicatorUnderTest> make(const MpiComm& world) {
  return std::make_unique<NcclUnderTest>(world);
}

bool has_a_gpu_for_each_rank(const MpiComm& world) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess) gpus = 0;
  return !world.any(gpus < world.split_by_node().world_size());
}

}  // namespace

std::vector<Implementation> implementations() {
  return {{"nccl", make, has_a_gpu_for_each_rank, "fewer GPUs on a node than ranks"}};
}

}  // namespace ssd::test
