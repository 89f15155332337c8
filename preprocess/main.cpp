// ssd_preprocess: packs COCO or Pascal VOC into HDF5 shards, alone or under mpirun. See --help.
#include <signal.h>

#include <cstdio>

#include "comm/agreement.hpp"
#include "core/error.hpp"
#include "preprocess/options.hpp"
#include "preprocess/pack.hpp"
#include "preprocess/sources.hpp"
#include "preprocess/verify.hpp"

namespace {

// Both splits are looked at, also where one fails: all problems are seen in one run.
int pack_all(const ssd::PreprocessOptions& options, const ssd::MpiComm& world) {
  std::vector<ssd::SplitSource> sources;
  ssd::run_in_agreement(world, [&] { sources = ssd::find_sources(options); });
  int exit_code = 0;
  for (const auto& source : sources) {
    try {
      ssd::pack_split(source, options, world);
    } catch (const ssd::AgreedFailure& failure) {
      exit_code = failure.exit_code;
    }
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error with a message, not a signal
  return ssd::run_program(argc, argv, [&](const ssd::MpiComm& world) {
    ssd::ParsedPreprocessOptions parsed;
    ssd::run_in_agreement(world, [&] { parsed = ssd::parse_options(argc, argv); });
    if (!parsed.options) {
      if (world.is_root()) std::fputs(parsed.text.c_str(), stdout);
      return 0;
    }
    const auto& options = *parsed.options;
    if (options.mode == ssd::PreprocessMode::pack) return pack_all(options, world);
    if (options.mode == ssd::PreprocessMode::verify) {
      ssd::verify_sets(options, world);
    } else {
      ssd::run_in_agreement(world, [&] {
        if (world.is_root()) ssd::print_info(options);
      });
    }
    return 0;
  });
}
