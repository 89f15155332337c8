// Whether a launcher started this process as one of several. A launcher that this build's MPI does not know
// gives each process a world of one: each would do the whole work, and write the same files. No MPI.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace ssd {

// The value of an environment variable, null where it is not set, as std::getenv.
using Environment = std::function<const char*(const char* name)>;

// What says that other processes were started beside this one, as text: "PMI_SIZE=8". Nothing where the
// process was started alone, or nothing says otherwise. Pure.
std::optional<std::string> sign_of_others(const Environment& environment);

// Why a process whose world has one rank must not run: sign_of_others found one, and SSD_ALLOW_SINGLETON is
// not 1. One line; nothing where it may run. Pure.
std::optional<std::string> objection_to_running_alone(const Environment& environment);

}  // namespace ssd
