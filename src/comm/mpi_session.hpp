// MPI from start to end: one object, owned by main. Started by mpirun or srun it initialises MPI with full
// thread support; started alone it is a world of one without MPI.
#pragma once

#include "comm/mpi_comm.hpp"

namespace ssd {

class MpiSession {
 public:
  MpiSession(int* argc, char*** argv);
  ~MpiSession();  // MPI_Finalize; left out while an exception is in flight
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  const MpiComm& world() const { return world_; }

 private:
  bool started_ = false;
  MpiComm world_;
};

// Ends every rank of the job with this exit code, at once. Local, from any thread. In a world of one: exits.
[[noreturn]] void abort_job(int exit_code);

std::string mpi_library_version();  // local, one line

}  // namespace ssd
