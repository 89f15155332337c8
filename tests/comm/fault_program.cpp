// A job that meets a fault in its communicator: what nccl_fault_test.cpp runs under mpirun.
//   fault_program nccl|mpi FAULT RANK TIMEOUT_SECONDS [abort_hangs|never_finishes]
// FAULT: a fault of the NCCL double by its number, or "exception": the rank throws with averages in flight
// that the others never start. abort_hangs: so does ncclCommAbort. never_finishes: the second step starts its
// averages and goes no further.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "comm/agreement.hpp"
#include "comm/nccl_double.hpp"
#include "comm/nccl_gradient_communicator.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace ssd {
namespace {

constexpr int kSteps = 3;
constexpr std::size_t kBuckets = 3;

struct Job {
  const MpiComm& world;
  GradientCommunicator& communicator;
  test::NcclDouble& nccl;
  void* stream;
  std::vector<std::vector<float>>& buckets;
  int throwing_rank;  // in the second step; -1: none
  bool never_finishes;

  void run_step(int step) {
    const bool is_throwing = step == 1 && world.rank() == throwing_rank;
    if (step == 1 && throwing_rank >= 0 && !is_throwing) world.barrier();  // never ends
    const auto nothing = [] { return true; };
    for (auto& bucket : buckets) {
      static_cast<void>(
          nccl.device().launch(stream, bucket.data(), test::SimulatedDevice::Use::write, nothing));
      communicator.start_average(bucket.data(), bucket.size(), WireType::float32);
    }
    if (is_throwing) throw Error("an exception of the program");
    while (never_finishes && step == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
    communicator.finish();
    for (auto& bucket : buckets) {
      static_cast<void>(
          nccl.device().launch(stream, bucket.data(), test::SimulatedDevice::Use::read, nothing));
    }
    nccl.device().synchronize(stream);
  }
};

int run(const MpiComm& world, const std::vector<std::string>& arguments) {
  const bool throws = arguments.at(1) == "exception";
  test::NcclInjection injection;
  if (!throws) injection.fault = static_cast<test::NcclFault>(std::stoi(arguments.at(1)));
  injection.rank = std::stoi(arguments.at(2));
  injection.average = kBuckets + 1;  // in the second step
  injection.does_abort_hang = arguments.size() > 4 && arguments[4] == "abort_hangs";
  NcclOptions options;
  options.start_timeout = options.step_timeout = std::chrono::seconds(std::stoi(arguments.at(3)));

  test::NcclDouble nccl(world, injection);
  static_cast<void>(nccl.device().create_stream(&options.compute_stream));
  // Longer than the communicator, which may be writing them when an exception is thrown.
  std::vector<std::vector<float>> buckets(kBuckets, std::vector<float>(1000, 1.F));
  auto communicator = arguments.at(0) == "mpi"
                          ? make_mpi_gradient_communicator(world)
                          : make_nccl_gradient_communicator(world, options, nccl.functions());
  Job job{world,
          *communicator,
          nccl,
          options.compute_stream,
          buckets,
          throws ? injection.rank : -1,
          arguments.size() > 4 && arguments[4] == "never_finishes"};
  for (int step = 0; step < kSteps; ++step) job.run_step(step);
  communicator.reset();
  for (const auto& rule : nccl.broken_rules()) log_error("broken rule: {}", rule);
  if (world.is_root()) std::puts("done");
  return 0;
}

}  // namespace
}  // namespace ssd

int main(int argc, char** argv) {
  return ssd::run_program(argc, argv, [&](const ssd::MpiComm& world) {
    return ssd::run(world, {argv + 1, argv + argc});
  });
}
