// Failing together. A phase that every rank runs (reading options, opening shards) may fail on all ranks, on
// some or on one: run_in_agreement lets all of them know, prints one line in all, and ends each rank in the
// same way, so that none waits for one that failed.
#pragma once

#include <functional>

#include "comm/mpi_comm.hpp"

namespace ssd {

// Thrown on every rank after the message has been printed; main returns the code.
struct AgreedFailure {
  int exit_code = 1;
};

// Collective. Runs the phase; if it threw on any rank, the lowest of these prints its error and AgreedFailure
// is thrown on all. The phase itself must not hold collective calls that a failing rank would leave out.
void run_in_agreement(const MpiComm& comm, const std::function<void()>& phase);

// The exit code and text of the exception in flight, for use in a catch (...) block: 2 for UsageError,
// else 1.
struct Failure {
  int exit_code = 1;
  std::string text;
};
Failure describe_current_exception();

// The body of every program's main: runs it with MPI up, turns exceptions into one line and an exit code. A
// failure that was not agreed on aborts the whole job. A process that was started as one of several, but has
// a world of one, is refused first (comm/launch.hpp).
int run_program(int argc, char** argv, const std::function<int(const MpiComm& world)>& body);

}  // namespace ssd
