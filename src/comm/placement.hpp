// Where a rank runs: its place on the node, and the cores that are its share.
#pragma once

#include "comm/mpi_comm.hpp"

namespace ssd {

struct RankPlacement {
  int local_rank = 0;
  int local_size = 1;     // ranks on this node
  int cores = 1;          // this rank's share of the cores that it and its neighbours may run on, at least 1
  int allowed_cores = 1;  // cores that this rank may run on
  std::string host;
};

// Collective. The share is right whether the launcher bound each rank to cores of its own or none at all: ranks and
// cores come from MPI and the binding, never from SLURM_* (under mpirun these are the launcher's).
RankPlacement find_placement(const MpiComm& world);

}  // namespace ssd
