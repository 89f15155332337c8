// Averages of gradients over all ranks, in place, overlapping with the caller's work. One interface, two
// implementations: MPI for buffers in host memory, NCCL for buffers on the GPU. Plain memory, no torch.
//
// Note [Same bucket order on every rank]
// start_average is collective and asynchronous: every rank must start the same buffers (count and type) in
// the same order. The order in which gradients become ready differs between ranks and steps, so callers start
// buckets by their index, never by readiness (train/gradient_reducer.hpp).
#pragma once

#include <cstddef>
#include <memory>

#include "comm/mpi_comm.hpp"

namespace ssd {

enum class WireType { float16, bfloat16, float32, float64 };

std::size_t wire_type_bytes(WireType type);
const char* wire_type_name(WireType type);

class GradientCommunicator {
 public:
  // Collective, but while an exception is in flight: then no other rank is waited for, and the job has to
  // end.
  virtual ~GradientCommunicator() = default;

  // What the caller multiplies its values by before start_average: 1/ranks where the implementation only
  // sums, so that a sum of halves does not overflow (tests/comm/half_sum_test.cpp has the bounds), and 1
  // where it averages by itself.
  virtual double prescale() const = 0;

  // Starts the average of count values, in place; returns at once. The buffer belongs to the communicator
  // until finish() has returned. See Note [Same bucket order on every rank].
  virtual void start_average(void* data, std::size_t count, WireType type) = 0;

  // Collective. After it the results of every average started are there (for a GPU: for the work the caller
  // queues on its stream from now on). Throws LibraryError.
  virtual void finish() = 0;
};

// Sums by MPI_Iallreduce on a communicator of its own, driven by a progress thread that sleeps between polls,
// since Open MPI makes no progress outside its calls. Halves are added in float and rounded once for each
// addition; for a fixed number of ranks the result is the same bits on all ranks and in every run. Making it
// is collective.
std::unique_ptr<GradientCommunicator> make_mpi_gradient_communicator(const MpiComm& world);

}  // namespace ssd
