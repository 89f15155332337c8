// The run of ssd_comm_bench: averages of growing sizes, and of the size of the network's gradient, by the
// communicator that training uses.
#pragma once

#include "comm/mpi_comm.hpp"
#include "comm_bench/comm_bench_options.hpp"

namespace ssd {

// Collective. Prints the table on rank 0; returns the exit code, 1 where an average had wrong values. Throws
// AgreedFailure (comm/agreement.hpp) for what all ranks know of, any other exception for what only this rank
// met.
int run_comm_bench(const CommBenchOptions& options, const MpiComm& world);

// What is averaged, in order: for each type the sizes, then the gradient. Pure.
std::vector<BenchmarkCase> benchmark_cases(const CommBenchOptions& options);

// Throws Error where so many buffers of this size are more than is free on `where`. Pure.
void expect_free_memory(std::size_t buffer_bytes, int buffers, std::size_t free_bytes,
                        const std::string& where);

}  // namespace ssd
