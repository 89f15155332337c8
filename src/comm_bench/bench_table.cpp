#include "comm_bench/bench_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ssd {
namespace {

constexpr const char* kRowFormat = "{:>12} {:>12} {:>10} {:>12} {:>9} {:>9} {:>9}{}\n";

std::string plural(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string ranks_and_nodes(const BenchSetting& setting) {
  return fmt::format("{} on {}", plural(static_cast<std::size_t>(setting.world_size), "rank"),
                     plural(static_cast<std::size_t>(setting.node_count), "node"));
}

}  // namespace

BenchRow bench_row(const BenchmarkCase& what, const BenchmarkResult& result, int world_size) {
  const double algbw = world_size > 1 ? algorithm_bandwidth(what.bytes(), result.seconds) : 0;
  return {what.bytes(),        what.count(),    what.type_name(),
          result.seconds,      algbw,           bus_bandwidth(algbw, world_size),
          result.wrong_values, what.is_gradient};
}

std::string format_head(const BenchSetting& setting) {
  std::string text =
      fmt::format("# {}, averages by {}, {} timed after {} of warmup\n", ranks_and_nodes(setting),
                  setting.backend, setting.benchmark.iterations, setting.benchmark.warmup);
  text += fmt::format("# gradient: {}; convolutions in the type, BatchNorm in FP32\n", setting.gradient);
  text +=
      "# algbw = size / time, busbw = algbw * 2 (ranks - 1) / ranks, in GB/s of 10^9 bytes; time of the "
      "slowest rank\n";
  text += '#' +
          fmt::format(kRowFormat, "size", "count", "type", "time", "algbw", "busbw", "errors", "").substr(1);
  return text + '#' +
         fmt::format(kRowFormat, "(B)", "(values)", "", "(us)", "(GB/s)", "(GB/s)", "", "").substr(1);
}

std::string format_row(const BenchRow& row) {
  return fmt::format(kRowFormat, row.bytes, row.count, row.type, fmt::format("{:.1f}", row.seconds * 1e6),
                     fmt::format("{:.3f}", row.algbw_gb_per_s), fmt::format("{:.3f}", row.busbw_gb_per_s),
                     row.wrong_values, row.is_gradient ? "  gradient" : "");
}

bool all_right(std::span<const BenchRow> rows) {
  return std::all_of(rows.begin(), rows.end(), [](const BenchRow& row) { return row.wrong_values == 0; });
}

std::string format_verdict(const BenchSetting& setting, std::span<const BenchRow> rows) {
  if (!all_right(rows)) {
    std::size_t wrong_rows = 0, wrong_values = 0;
    for (const auto& row : rows) {
      wrong_rows += row.wrong_values != 0 ? 1 : 0;
      wrong_values += row.wrong_values;
    }
    return fmt::format("FAILED: {} in {} of {} averages, {} by {}", plural(wrong_values, "wrong value"),
                       wrong_rows, rows.size(), ranks_and_nodes(setting), setting.backend);
  }
  auto text = fmt::format("ok: {}, no wrong value", plural(rows.size(), "average"));
  if (setting.world_size == 1)
    return text + "; one rank alone, so nothing travelled: start it by mpirun or srun";
  for (const auto& row : rows) {
    if (!row.is_gradient) continue;
    text += fmt::format("; the gradient in {}: {:.2f} ms, busbw {:.2f} GB/s", row.type, row.seconds * 1e3,
                        row.busbw_gb_per_s);
  }
  return text;
}

nlohmann::ordered_json bench_json(const BenchSetting& setting, std::span<const BenchRow> rows) {
  auto table = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    table.push_back({{"size", row.bytes},
                     {"count", row.count},
                     {"type", row.type},
                     {"gradient", row.is_gradient},
                     {"time_us", row.seconds * 1e6},
                     {"algbw_gb_per_s", row.algbw_gb_per_s},
                     {"busbw_gb_per_s", row.busbw_gb_per_s},
                     {"errors", row.wrong_values}});
  }
  return {{"program", "ssd_comm_bench"},
          {"version", SSD_VERSION},
          {"ranks", setting.world_size},
          {"nodes", setting.node_count},
          {"backend", setting.backend},
          {"gradient_of", setting.gradient},
          {"iterations", setting.benchmark.iterations},
          {"warmup", setting.benchmark.warmup},
          {"rows", table},
          {"ok", all_right(rows)}};
}

}  // namespace ssd
