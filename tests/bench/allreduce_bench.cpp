// The average of a gradient in FP16 by this project's communicator against Open MPI's own MPI_Allreduce of as
// many values in FP32: what a program without it would do. Medians of five, taken in turn, of the rank that
// took longest.
//   mpirun -np 8 build/default/tests/bench/bench_allreduce [BACKBONE]
// BACKBONE: resnet18, resnet34, resnet50 (default), ...: whose gradient. Prints one line; a ratio above 1:
// FP16 is faster.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "comm/agreement.hpp"
#include "comm/gradient_communicator.hpp"
#include "comm/mpi_check.hpp"
#include "comm_bench/gradient_size.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

constexpr std::size_t kRounds = 5;

std::size_t gradient_count(const std::string& backbone) {
  for (const auto& size : kGradientSizes) {
    if (backbone == size.backbone) return size.convolution_count + size.batch_norm_count;
  }
  throw UsageError(fmt::format("'{}': no backbone of this name", backbone));
}

// Seconds of the slowest rank.
template <class Work>
double time_of(const MpiComm& world, Work&& work) {
  world.barrier();
  const auto start = std::chrono::steady_clock::now();
  work();
  const auto elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return world.reduce_all(elapsed, ReduceOperation::max);
}

double median(std::array<double, kRounds> values) {
  std::sort(values.begin(), values.end());
  return values[kRounds / 2];
}

int run_bench(const std::string& backbone, const MpiComm& world) {
  std::size_t count = 0;
  run_in_agreement(world, [&] {
    if (world.world_size() == 1) throw UsageError("one rank sends nothing; start it by mpirun -np 2 or more");
    count = gradient_count(backbone);
  });
  // Of zeros: they stay in range however often they are summed.
  std::vector<std::uint16_t> halves(count);
  std::vector<float> singles(count);
  const auto communicator = make_mpi_gradient_communicator(world);
  const auto average_halves = [&] {
    communicator->start_average(halves.data(), count, WireType::float16);
    communicator->finish();
  };
  const auto sum_singles = [&] {
    SSD_MPI_CALL(MPI_Allreduce, MPI_IN_PLACE, singles.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                 static_cast<MPI_Comm>(world.handle()));
  };
  average_halves();
  sum_singles();
  std::array<double, kRounds> half_s{}, single_s{};
  for (std::size_t round = 0; round < kRounds; ++round) {
    half_s[round] = time_of(world, average_halves);
    single_s[round] = time_of(world, sum_singles);
  }
  if (world.is_root()) {
    fmt::print(
        "{} ranks, {} values of {}: FP16 average {:.1f} ms, FP32 MPI_Allreduce {:.1f} ms, ratio {:.2f}\n",
        world.world_size(), count, backbone, median(half_s) * 1e3, median(single_s) * 1e3,
        median(single_s) / median(half_s));
  }
  return 0;
}

}  // namespace
}  // namespace ssd

int main(int argc, char** argv) {
  return ssd::run_program(argc, argv, [&](const ssd::MpiComm& world) {
    return ssd::run_bench(argc > 1 ? argv[1] : "resnet50", world);
  });
}
