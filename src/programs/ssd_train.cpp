// ssd_train: trains and evaluates SSD300. See --help.
#include <cstdio>

#include "comm/agreement.hpp"
#include "core/stop_signals.hpp"
#include "train/train_options.hpp"
#include "train/trainer.hpp"

int main(int argc, char** argv) {
  ssd::install_stop_signals();
  return ssd::run_program(argc, argv, [&](const ssd::MpiComm& world) {
    ssd::ParsedTrainOptions parsed;
    ssd::run_in_agreement(world, [&] { parsed = ssd::parse_train_options(argc, argv); });
    if (!parsed.options) {
      if (world.is_root()) std::fputs(parsed.text.c_str(), stdout);
      return 0;
    }
    return ssd::run_training_program(*parsed.options, world);
  });
}
