// What ssd_comm_bench says: its table, the verdict, and the same as JSON. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "comm/comm_benchmark.hpp"

namespace ssd {

struct BenchRow {
  std::size_t bytes = 0;
  std::size_t count = 0;
  std::string type;  // "FP16", "FP32", "FP16+FP32"
  double seconds = 0;
  double algbw_gb_per_s = 0;
  double busbw_gb_per_s = 0;
  std::size_t wrong_values = 0;
  bool is_gradient = false;
};

// Of a world of one the bandwidths are 0: nothing travels.
BenchRow bench_row(const BenchmarkCase& what, const BenchmarkResult& result, int world_size);

// What the averages were made on and of.
struct BenchSetting {
  int world_size = 1;
  int node_count = 1;
  std::string backend;   // "MPI (Open MPI v4.1.4) in host memory"
  std::string gradient;  // "SSD300 with resnet50, 81 classes"
  BenchmarkOptions benchmark;
};

// Lines that end in '\n'. Those of the head begin with '#', as in nccl-tests.
std::string format_head(const BenchSetting& setting);
std::string format_row(const BenchRow& row);

bool all_right(std::span<const BenchRow> rows);
// One line without '\n' that begins with "ok: " or "FAILED: ".
std::string format_verdict(const BenchSetting& setting, std::span<const BenchRow> rows);

nlohmann::ordered_json bench_json(const BenchSetting& setting, std::span<const BenchRow> rows);

}  // namespace ssd
