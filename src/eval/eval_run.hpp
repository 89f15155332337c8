// The work of ssd_eval: reads ground truth and results, matches, accumulates, prints and writes. Under mpirun
// every rank reads both and matches its share of the images; rank 0 accumulates and speaks.
#pragma once

#include "comm/mpi_comm.hpp"
#include "eval/eval_options.hpp"

namespace ssd {

// Collective. Returns the exit code; throws AgreedFailure on every rank where something failed on one.
int run_evaluation_program(const EvalOptions& options, const MpiComm& world);

}  // namespace ssd
