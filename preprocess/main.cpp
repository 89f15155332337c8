// ssd_preprocess: packs COCO into HDF5 shards. See --help.
#include <signal.h>

#include <new>

#include "core/error.hpp"
#include "core/log.hpp"
#include "preprocess/options.hpp"
#include "preprocess/pack.hpp"
#include "preprocess/sources.hpp"

namespace {

// Both splits are looked at, also where one fails: all problems are seen in one run.
int pack_all(const ssd::PreprocessOptions& options) {
  int failures = 0;
  for (const auto& source : ssd::find_sources(options)) {
    try {
      ssd::pack_split(source, options);
    } catch (const ssd::Error& error) {
      ssd::log_error("{}", error.what());
      ++failures;
    }
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error with a message, not a signal
  try {
    const auto options = ssd::parse_options(argc, argv);
    return options ? pack_all(*options) : 0;
  } catch (const ssd::UsageError& error) {
    ssd::log_error("{}", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    ssd::log_error("out of memory; a smaller --shard-size or fewer --threads need less");
    return 1;
  } catch (const std::exception& error) {
    ssd::log_error("{}", error.what());
    return 1;
  }
}
