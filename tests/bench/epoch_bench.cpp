// One epoch of a set through the training loader: that every record comes, time, and memory on the way.
//   bench_epoch SHARDS [THREADS]
#include <fmt/format.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "core/stopwatch.hpp"
#include "data/loader.hpp"
#include "data/training_boxes.hpp"
#include "support/own_memory.hpp"

namespace ssd {
namespace {

constexpr int kBatchSize = 32;
constexpr int kReports = 4;  // of memory

// Whether every record came.
bool read_epoch(const char* folder, int threads) {
  const Stopwatch opening;
  const auto set = ShardSet::open(folder, Split::train);
  fmt::print("opened {} records in {:.2f} s, memory {} KiB\n", set.records().size(), opening.seconds(),
             own_memory_kib());
  TrainLoaderOptions options;
  options.share.batch_size = kBatchSize;
  options.seed = 1;
  options.pipeline.threads = threads;
  const Stopwatch watch;
  TrainLoader loader(set, options);
  std::vector<int> times(set.records().size());
  const auto iterations = loader.iterations_per_epoch();
  for (std::uint64_t i = 0; i < iterations; ++i) {
    const auto batch = loader.next();
    for (const auto record : batch->record_indices) ++times[record];
    if ((i + 1) % (iterations / kReports + 1) == 0)
      fmt::print("iteration {} of {}: memory {} KiB\n", i + 1, iterations, own_memory_kib());
  }
  const double seconds = watch.seconds();
  std::size_t seen = 0;
  for (const auto record : usable_records(set, options.crowd)) seen += times[record] > 0 ? 1U : 0U;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{} of {} usable records came; {} samples in {:.1f} s, {:.0f} samples/s with {} threads, peak {} MiB\n",
      seen, loader.usable_record_count(), iterations * kBatchSize, seconds,
      static_cast<double>(iterations * kBatchSize) / seconds, threads, usage.ru_maxrss / 1024);
  return seen == loader.usable_record_count();
}

}  // namespace
}  // namespace ssd

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "bench_epoch SHARDS [THREADS]\n");
    return 2;
  }
  return ssd::read_epoch(argv[1], argc == 3 ? std::stoi(argv[2]) : 1) ? 0 : 1;
}
