// The implementations that need no GPU: MPI, and NCCL's sequence of calls against its double.
#include <cstring>

#include "comm/communicator_under_test.hpp"
#include "comm/nccl_double.hpp"
#include "comm/nccl_gradient_communicator.hpp"

namespace ssd::test {
namespace {

class HostMemory : public CommunicatorUnderTest {
 public:
  void* allocate(std::size_t bytes) override { return buffers_.emplace_back(bytes).data(); }

 private:
  std::vector<std::vector<std::byte>> buffers_;
};

class MpiUnderTest : public HostMemory {
 public:
  explicit MpiUnderTest(const MpiComm& world) : world_(world) {}
  std::unique_ptr<GradientCommunicator> make() override { return make_mpi_gradient_communicator(world_); }
  void upload(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }

 private:
  const MpiComm& world_;
};

class NcclDoubleUnderTest : public HostMemory {
 public:
  explicit NcclDoubleUnderTest(const MpiComm& world) : world_(world), nccl_(world, {}) {
    static_cast<void>(nccl_.device().create_stream(&stream_));
  }

  std::unique_ptr<GradientCommunicator> make() override {
    NcclOptions options;
    options.compute_stream = stream_;
    return make_nccl_gradient_communicator(world_, options, nccl_.functions());
  }

  void upload(void* to, const void* from, std::size_t bytes) override {
    const auto* begin = static_cast<const std::byte*>(from);
    launch(to, SimulatedDevice::Use::write, [to, copy = std::vector<std::byte>(begin, begin + bytes)] {
      std::memcpy(to, copy.data(), copy.size());
      return true;
    });
  }

  void download(void* to, const void* from, std::size_t bytes) override {
    launch(from, SimulatedDevice::Use::read, [to, from, bytes] {
      std::memcpy(to, from, bytes);
      return true;
    });
    nccl_.device().synchronize(stream_);
  }

  std::vector<std::string> complaints() override {
    static_cast<void>(nccl_.device().destroy_stream(stream_));
    auto all = nccl_.broken_rules();
    for (auto& leak : nccl_.leaks()) all.push_back("left: " + leak);
    return all;
  }

 private:
  void launch(const void* buffer, SimulatedDevice::Use use, SimulatedDevice::Task task) {
    static_cast<void>(nccl_.device().launch(stream_, buffer, use, std::move(task)));
  }

  const MpiComm& world_;
  NcclDouble nccl_;
  void* stream_ = nullptr;
};

template <class T>
std::unique_ptr<CommunicatorUnderTest> make(const MpiComm& world) {
  return std::make_unique<T>(world);
}

}  // namespace

std::vector<Implementation> implementations() {
  return {{"mpi", make<MpiUnderTest>}, {"nccl_double", make<NcclDoubleUnderTest>}};
}

}  // namespace ssd::test
