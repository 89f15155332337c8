#include "train/benchmark_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"

namespace ssd {

RateSummary summarise_rates(const std::vector<double>& seconds, double images) {
  SSD_EXPECT(!seconds.empty());
  auto sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const double whole = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  const auto middle = sorted.size() / 2;
  const double median_s = sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return {images * static_cast<double>(sorted.size()) / whole, images / median_s, images / sorted.back(),
          images / sorted.front()};
}

std::string format_report(const BenchmarkReport& report) {
  const auto& total = report.total;
  std::string text =
      fmt::format("{}: {:.1f} img/s on {} rank{}, {:.1f} each (median {:.1f}, min {:.1f}, max {:.1f})\n",
                  report.what, total.mean, report.world_size, report.world_size == 1 ? "" : "s",
                  total.mean / report.world_size, total.median, total.least, total.most);
  if (report.waits.empty()) {
    return text + fmt::format("decode and NMS: {:.2f} ms an image (rank 0)\n", report.decode_ms_per_image);
  }
  text += "rank  waited for data, ms  waited for gradients, ms (per iteration)\n";
  for (std::size_t rank = 0; rank < report.waits.size(); ++rank) {
    text += fmt::format("{:4}  {:19.2f}  {:24.2f}\n", rank, report.waits[rank].data_ms,
                        report.waits[rank].exposed_comm_ms);
  }
  const double whole = std::accumulate(report.phases.begin(), report.phases.end(), 0.0);
  text += "phase          ms  share (rank 0, phases one after another)\n";
  for (std::size_t i = 0; i < report.phases.size(); ++i) {
    text += fmt::format("{:12} {:7.2f}  {:4.1f} %\n", kStepPhaseNames[i], report.phases[i],
                        whole > 0 ? 100 * report.phases[i] / whole : 0);
  }
  return text;
}

JsonLines::Json json_of(const BenchmarkReport& report) {
  JsonLines::Json json{{"avg_img/sec", report.total.mean},
                       {"med_img/sec", report.total.median},
                       {"min_img/sec", report.total.least},
                       {"max_img/sec", report.total.most},
                       {"ranks", report.world_size}};
  if (report.waits.empty()) {
    json["decode_ms_per_image"] = report.decode_ms_per_image;
    return json;
  }
  for (const auto& rank : report.waits) {
    json["data_ms"].push_back(rank.data_ms);
    json["exposed_comm_ms"].push_back(rank.exposed_comm_ms);
  }
  for (std::size_t i = 0; i < report.phases.size(); ++i)
    json["step_ms"][kStepPhaseNames[i]] = report.phases[i];
  return json;
}

}  // namespace ssd
