// Ends a job in which nothing goes on, and says which rank is to blame (comm/life_signs.hpp): a rank that is
// stopped or gone, or stuck in a read, a save or a computation, or ranks that wait for each other. A thread
// on each rank sends a small message every second; rank 0 hears all of them, rank 1 hears rank 0. The main
// thread says what it does by marks (core/phase.hpp), and works on undisturbed.
#pragma once

#include <memory>

#include "comm/mpi_comm.hpp"

namespace ssd {

class Watchdog {
 public:
  // Collective. Nobody may be stuck for longer than the deadline; then one line is printed and all ranks end
  // with exit code 1, within three more seconds and what the launcher takes. Time in which this process
  // itself is stopped (a suspended job) does not count. 0: nothing is watched.
  Watchdog(const MpiComm& world, double deadline_s);
  // Collective, unless an exception is in flight: then nobody is waited for.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;  // null: nothing is watched
};

}  // namespace ssd
