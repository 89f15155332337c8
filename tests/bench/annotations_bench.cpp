// Reads an annotation JSON once: time, and peak memory of the process. bench_annotations FILE
#include <fmt/format.h>
#include <sys/resource.h>

#include "coco/annotations.hpp"
#include "core/stopwatch.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const ssd::Stopwatch watch;
  const auto set = ssd::read_annotations(argv[1]);
  const double seconds = watch.seconds();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print("read_annotations: {:.2f} s, peak {} MiB ({} images, {} annotations)\n", seconds,
             usage.ru_maxrss / 1024, set.images.size(), set.annotations.size());
}
