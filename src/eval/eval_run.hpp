// The work of ssd_eval: reads ground truth and results, matches, accumulates, prints and writes. Under mpirun
// every rank reads both and matches its share of the images; rank 0 accumulates and speaks. The numbers are
// the same, bit for bit, for any number of ranks and threads. Both are collective, and throw AgreedFailure on
// every rank where something failed on one.
#pragma once

#include <optional>

#include "comm/mpi_comm.hpp"
#include "eval/eval_options.hpp"
#include "eval/eval_report.hpp"

namespace ssd {

// On rank 0; nothing on the others. Prints nothing but errors, and progress where reading takes long.
std::optional<EvalReport> evaluate_files(const EvalOptions& options, const MpiComm& world);

// Writes what the options ask for and prints the twelve lines. Returns the exit code.
int run_evaluation_program(const EvalOptions& options, const MpiComm& world);

}  // namespace ssd
