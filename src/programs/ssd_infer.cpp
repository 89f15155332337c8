// ssd_infer: finds objects in pictures, writes and draws them. See --help.
#include <cstdio>

#include "comm/agreement.hpp"
#include "core/error.hpp"
#include "infer/infer_options.hpp"
#include "infer/inference.hpp"

int main(int argc, char** argv) {
  return ssd::run_program(argc, argv, [&](const ssd::MpiComm& world) {
    ssd::ParsedInferOptions parsed;
    ssd::run_in_agreement(world, [&] {
      if (world.world_size() != 1)
        throw ssd::UsageError("ssd_infer runs in one process; start it without mpirun");
      parsed = ssd::parse_infer_options(argc, argv);
    });
    if (parsed.options) return ssd::run_inference(*parsed.options, world);
    std::fputs(parsed.text.c_str(), stdout);
    return 0;
  });
}
