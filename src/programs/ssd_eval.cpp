// ssd_eval: evaluates detections as pycocotools does. See --help.
#include <cstdio>

#include "comm/agreement.hpp"
#include "eval/eval_options.hpp"
#include "eval/eval_run.hpp"

int main(int argc, char** argv) {
  return ssd::run_program(argc, argv, [&](const ssd::MpiComm& world) {
    ssd::ParsedEvalOptions parsed;
    ssd::run_in_agreement(world, [&] { parsed = ssd::parse_eval_options(argc, argv); });
    if (!parsed.options) {
      if (world.is_root()) std::fputs(parsed.text.c_str(), stdout);
      return 0;
    }
    return ssd::run_evaluation_program(*parsed.options, world);
  });
}
