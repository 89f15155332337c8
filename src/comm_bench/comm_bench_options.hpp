// The options of ssd_comm_bench: one table makes the parser and --help.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/comm_benchmark.hpp"
#include "comm/placement.hpp"
#include "comm_bench/gradient_size.hpp"

namespace ssd {

struct CommBenchOptions {
  std::size_t min_bytes = 8;
  std::size_t max_bytes = 256 << 20;
  std::vector<WireType> types = {WireType::float16, WireType::float32};
  BenchmarkOptions benchmark;
  DeviceChoice device = DeviceChoice::automatic;
  GradientSize gradient = kGradientSizes[2];  // ResNet-50
  std::filesystem::path json;                 // empty: none
};

// Nothing where the text asked for (--help, --version) is all there is to do: then it is in `text`.
struct ParsedCommBenchOptions {
  std::optional<CommBenchOptions> options;
  std::string text;
};

// Throws UsageError, one line that names the option and its value. Pure.
ParsedCommBenchOptions parse_comm_bench_options(int argc, const char* const* argv);

// "8", "4K", "256M", "1G", also "256MiB": powers of 1024. Nothing where it is no such size.
std::optional<std::size_t> bytes_from_text(std::string_view text);

}  // namespace ssd
