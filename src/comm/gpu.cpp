#include "comm/gpu.hpp"

#include "core/error.hpp"
#if SSD_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace ssd {

#if SSD_WITH_CUDA

namespace {

void check(cudaError_t code, const char* call) {
  if (code != cudaSuccess) throw LibraryError("CUDA", call, cudaGetErrorString(code));
}

class GpuBuffer : public CommBuffer {
 public:
  GpuBuffer(std::size_t bytes, int index) : size_(bytes) {
    check(cudaSetDevice(index), "cudaSetDevice");
    check(cudaMalloc(&data_, bytes), "cudaMalloc");
  }
  ~GpuBuffer() override { cudaFree(data_); }
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;

  std::byte* data() override { return static_cast<std::byte*>(data_); }
  void write(std::size_t offset, std::span<const std::byte> bytes) override {
    SSD_EXPECT(offset + bytes.size() <= size_);
    check(cudaMemcpy(data() + offset, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  void read(std::size_t offset, std::span<std::byte> bytes) override {
    SSD_EXPECT(offset + bytes.size() <= size_);
    check(cudaMemcpy(bytes.data(), data() + offset, bytes.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  }
  void clear(std::size_t bytes) override {
    SSD_EXPECT(bytes <= size_);
    check(cudaMemset(data_, 0, bytes), "cudaMemset");
  }
  void wait() override { check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize"); }

 private:
  std::size_t size_;
  void* data_ = nullptr;
};

}  // namespace

int visible_gpu_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string gpu_pci_id(int index) {
  char id[32] = "";  // "domain:bus:device.function"
  check(cudaDeviceGetPCIBusId(id, sizeof id, index), "cudaDeviceGetPCIBusId");
  return id;
}

std::size_t free_gpu_bytes(int index) {
  std::size_t free = 0, total = 0;
  check(cudaSetDevice(index), "cudaSetDevice");
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

std::unique_ptr<CommBuffer> make_gpu_buffer(std::size_t bytes, int index) {
  return std::make_unique<GpuBuffer>(bytes, index);
}

#else

int visible_gpu_count() {
  return 0;
}
std::string gpu_pci_id(int) {
  throw Error("this build is without CUDA");
}
std::size_t free_gpu_bytes(int) {
  throw Error("this build is without CUDA");
}
std::unique_ptr<CommBuffer> make_gpu_buffer(std::size_t, int) {
  throw Error("this build is without CUDA");
}

#endif

}  // namespace ssd
