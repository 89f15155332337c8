// MPI's world for tests that run under mpirun.
#pragma once

#include <mpi.h>

#include "comm/mpi_comm.hpp"

namespace ssd::test {

// Collective: a communicator of the same ranks with messages of its own.
inline MpiComm copy_of(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &copy);
  return MpiComm(copy);
}
inline MpiComm copy_of_world() {
  return copy_of(MPI_COMM_WORLD);
}

}  // namespace ssd::test
