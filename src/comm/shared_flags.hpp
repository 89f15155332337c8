// A few flags that any rank may raise and all ranks learn of in the same step: requests to stop or to save.
#pragma once

#include <cstdint>

#include "comm/mpi_comm.hpp"

namespace ssd {

// Note [Agreement one step later]
// Each call of exchange() starts a reduction and returns the result of the one that the call before it
// started, which has had a whole step to arrive: no rank waits for another, and all act on the same flags in
// the same step.
class SharedFlags {
 public:
  // Collective: messages of its own.
  explicit SharedFlags(const MpiComm& world);
  // Collective, unless an exception is in flight: then nothing is waited for.
  ~SharedFlags();
  SharedFlags(const SharedFlags&) = delete;
  SharedFlags& operator=(const SharedFlags&) = delete;

  // Collective. Own flags out; the bitwise or of what all ranks passed at the call before comes back (0 at
  // first). In a world of one the flags come back at once.
  std::uint32_t exchange(std::uint32_t own);

 private:
  void complete();

  MpiComm comm_;
  void* request_ = nullptr;  // an MPI_Request, null while none is under way
  std::uint32_t sent_ = 0;
  std::uint32_t received_ = 0;
};

}  // namespace ssd
