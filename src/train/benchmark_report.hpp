// What the benchmark modes of ssd_train report: images per second as the reference's log has them (mean,
// median, least, most), what each rank waited for, and where a step's time goes.
#pragma once

#include <string>
#include <vector>

#include "report/json_lines.hpp"
#include "train/phase_clock.hpp"

namespace ssd {

struct RateSummary {
  double mean = 0, median = 0, least = 0, most = 0;  // images per second
};

// Of at least one iteration: each of `images` images, in these seconds. The mean is that of the whole time.
RateSummary summarise_rates(const std::vector<double>& seconds, double images);

// Of one rank, per iteration.
struct RankWaits {
  double data_ms = 0;
  double exposed_comm_ms = 0;  // NaN where it is not known
};

struct BenchmarkReport {
  std::string what;   // "training", "inference"
  RateSummary total;  // of all ranks
  int world_size = 1;
  std::vector<RankWaits> waits;       // of each rank; empty for inference
  PhaseClock::Milliseconds phases{};  // per iteration, of rank 0; all 0 for inference
  double decode_ms_per_image = 0;     // of inference: from predictions to detections, on rank 0
};

std::string format_report(const BenchmarkReport& report);
// With the reference's keys avg_img/sec, med_img/sec, min_img/sec and max_img/sec.
JsonLines::Json json_of(const BenchmarkReport& report);

}  // namespace ssd
