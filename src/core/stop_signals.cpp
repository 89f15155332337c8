#include "core/stop_signals.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>

namespace ssd {
namespace {

std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

extern "C" void note_stop_signal(int signal) {
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal)) return;
  ::_exit(128 + signal);
}

}  // namespace

void install_stop_signals() {
  struct sigaction action {};
  action.sa_handler = note_stop_signal;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT}) ::sigaction(signal, &action, nullptr);
}

int stop_signal() {
  return first_signal.load();
}

const char* signal_name(int signal) {
  switch (signal) {
    case SIGUSR1:
      return "USR1";
    case SIGUSR2:
      return "USR2";
    case SIGTERM:
      return "TERM";
    case SIGINT:
      return "INT";
    default:
      return "?";
  }
}

}  // namespace ssd
