// ssd_comm_bench: times and checks averages of gradients over all ranks. See --help.
#include <cstdio>

#include "comm/agreement.hpp"
#include "comm_bench/comm_bench.hpp"
#include "comm_bench/comm_bench_options.hpp"

int main(int argc, char** argv) {
  return ssd::run_program(argc, argv, [&](const ssd::MpiComm& world) {
    ssd::ParsedCommBenchOptions parsed;
    ssd::run_in_agreement(world, [&] { parsed = ssd::parse_comm_bench_options(argc, argv); });
    if (parsed.options) return ssd::run_comm_bench(*parsed.options, world);
    if (world.is_root()) std::fputs(parsed.text.c_str(), stdout);
    return 0;
  });
}
