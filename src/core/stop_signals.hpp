// Signals that ask a run to end in order: USR1 and USR2 (batch systems before the time limit, preemption),
// TERM and INT. The first is noted, and whoever runs looks at it between two steps; a second one ends the
// process at once.
#pragma once

namespace ssd {

// The exit code of a run that was asked to end, saved, and can go on: EX_TEMPFAIL of <sysexits.h>.
inline constexpr int kStoppedExitCode = 75;

// To be called first in main, before MPI is up: until then these signals kill. Once per process.
void install_stop_signals();

// The first signal that came, 0 for none. From any thread.
int stop_signal();

const char* signal_name(int signal);  // "USR1", ...; of those above

}  // namespace ssd
