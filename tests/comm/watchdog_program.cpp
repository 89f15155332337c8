// A job that is watched: what watchdog_test.cpp runs, alone or under mpirun.
//   watchdog_program DEADLINE_SECONDS END_FILE WHAT [RANK]
// WHAT: work: every rank goes on; hang: the rank stays in one phase and the others wait for it; wait: all
// wait for each other; leave: the rank ends at once, and the others go on. Until END_FILE is there; then all
// end, and rank 0 prints "done".
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "comm/agreement.hpp"
#include "comm/watchdog.hpp"
#include "core/log.hpp"
#include "core/phase.hpp"

namespace ssd {
namespace {

void wait_for_file(const std::string& path, bool notes_progress) {
  while (!std::filesystem::exists(path)) {
    if (notes_progress) note_progress();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

int run(const MpiComm& world, const std::vector<std::string>& arguments) {
  const auto& end_file = arguments.at(1);
  const auto& what = arguments.at(2);
  const bool is_meant = arguments.size() > 3 && std::stoi(arguments[3]) == world.rank();
  {
    const Watchdog watchdog(world, std::stod(arguments.at(0)));
    if (world.is_root()) log_line("ready");
    if (what == "work" || (what == "leave" && !is_meant)) wait_for_file(end_file, true);
    if (what == "hang" && is_meant) {
      const PhaseMark mark("reading a picture");
      wait_for_file(end_file, false);
    }
    if (what == "wait" || (what == "hang" && !is_meant)) {
      const PhaseMark mark("training");
      const WaitForRanksMark waits;
      wait_for_file(end_file, false);
    }
  }
  if (world.is_root()) std::puts("done");
  return 0;
}

}  // namespace
}  // namespace ssd

int main(int argc, char** argv) {
  return ssd::run_program(argc, argv, [&](const ssd::MpiComm& world) {
    return ssd::run(world, {argv + 1, argv + argc});
  });
}
