// Times the averages of a gradient communicator and checks what they give: what NVIDIA's nccl-tests do for an
// allreduce, for any implementation and any kind of memory.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/comm_buffer.hpp"
#include "comm/gradient_communicator.hpp"
#include "comm/mpi_comm.hpp"

namespace ssd {

// What one start_average takes.
struct AveragePart {
  WireType type = WireType::float32;
  std::size_t count = 0;  // values
};

// What is measured as one: parts that lie one after the other in the buffer and end in one finish().
struct BenchmarkCase {
  std::vector<AveragePart> parts;
  bool is_gradient = false;  // of the network, not one of the series of sizes

  std::size_t count() const;         // values
  std::size_t bytes() const;         // that are averaged
  std::size_t buffer_bytes() const;  // with what lies between parts
  std::string type_name() const;     // "FP16", "FP16+FP32"
};

struct BenchmarkOptions {
  int warmup = 5;  // averages that are not timed
  int iterations = 20;
};

struct BenchmarkResult {
  double seconds = 0;            // of one average, on the rank that took longest
  std::size_t wrong_values = 0;  // on all ranks
};

// From least on, each the double of the one before, up to most.
std::vector<std::size_t> doubled_sizes(std::size_t least, std::size_t most);

// As nccl-tests define them (doc/PERFORMANCE.md), in GB/s of 10^9 bytes: algbw is bytes over time; busbw of
// an allreduce is algbw * 2 (n - 1) / n, what each of n ranks has to send at least, which does not depend on
// their number.
double algorithm_bandwidth(std::size_t bytes, double seconds);
double bus_bandwidth(double algorithm_bandwidth, int world_size);

// One average of known values (known_values.hpp): how many came out wrong on this rank. Collective.
std::size_t count_wrong_averages(GradientCommunicator& communicator, CommBuffer& buffer,
                                 const BenchmarkCase& what, int rank, int world_size);

// The check, then the time. The buffer has at least what.buffer_bytes(). Timed are averages of zeros: sums
// that are averaged again would leave the range of their type, and no communicator is faster for a value.
// Collective.
BenchmarkResult measure(const MpiComm& world, GradientCommunicator& communicator, CommBuffer& buffer,
                        const BenchmarkCase& what, const BenchmarkOptions& options);

}  // namespace ssd
