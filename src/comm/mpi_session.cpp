#include "comm/mpi_session.hpp"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

#include "comm/mpi_check.hpp"
#include "core/error.hpp"
#include "core/host_name.hpp"
#include "core/log.hpp"

namespace ssd {
namespace {

constexpr std::chrono::seconds kLongestFinalize{60}, kLongestAbort{10};

// Set by Open MPI's mpirun, by PMIx (srun --mpi=pmix) and by PMI2 (srun --mpi=pmi2) for every rank they
// start.
bool is_launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

}  // namespace

MpiSession::MpiSession(int* argc, char*** argv) {
  if (!is_launched()) {
    set_log_identity({0, 1, host_name()});
    return;
  }
  // Without Open MPI's handlers of deadly signals: they print a trace of the stack, which takes memory, and a
  // rank that dies inside malloc would stand still in them.
  ::setenv("OMPI_MCA_opal_signal", "", 0);
  int provided = MPI_THREAD_SINGLE;
  SSD_MPI_CALL(MPI_Init_thread, argc, argv, MPI_THREAD_MULTIPLE, &provided);
  started_ = true;
  // Errors come back as codes from here on, on copies of this communicator too.
  SSD_MPI_CALL(MPI_Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm world = MPI_COMM_NULL;
  SSD_MPI_CALL(MPI_Comm_dup, MPI_COMM_WORLD, &world);
  world_ = MpiComm(world);
  set_log_identity({world_.rank(), world_.world_size(), host_name()});
  SSD_VALIDATE(provided == MPI_THREAD_MULTIPLE,
               "this MPI gives thread level {}, MPI_THREAD_MULTIPLE ({}) is needed; use an MPI built with it",
               provided, int{MPI_THREAD_MULTIPLE});
}

MpiSession::~MpiSession() {
  if (!started_ || std::uncaught_exceptions() > 0) return;
  const bool is_root = world_.is_root();
  world_ = MpiComm();
  std::thread([is_root] {
    std::this_thread::sleep_for(kLongestFinalize);
    if (is_root)
      log_error("a rank has not come to its end {} s after the others; the job ends here",
                kLongestFinalize.count());
    std::_Exit(1);
  }).detach();
  MPI_Finalize();
}

void abort_job(int exit_code) {
  // MPI_Abort does not come back; where it is stuck itself, this rank ends at least.
  std::thread([exit_code] {
    std::this_thread::sleep_for(kLongestAbort);
    std::_Exit(exit_code);
  }).detach();
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized != 0 && finalized == 0) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

std::string mpi_library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string line(text, static_cast<std::size_t>(length));
  return line.substr(0, line.find_first_of(",\n"));
}

}  // namespace ssd
