// ssd_comm_bench as a user starts it: the table, the verdict, the exit code, on 1, 2 and 4 ranks.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "support/files.hpp"
#include "support/run_program.hpp"

namespace ssd {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Words = std::vector<std::string>;

const std::string kCommBench = SSD_BIN_DIR "/ssd_comm_bench";

// ranks 0: without a launcher
ProgramResult bench(int ranks, const Words& more) {
  Words command;
  if (ranks > 0) command = {SSD_MPIEXEC, "-np", std::to_string(ranks)};
  command.insert(command.end(), {kCommBench, "--device", "cpu"});
  command.insert(command.end(), more.begin(), more.end());
  return run_program(command);
}

// Few averages of few sizes; the gradient of ResNet-18 is 28 MB in half precision.
Words few(const Words& more = {}) {
  Words words{"--max-bytes", "64K", "--iterations", "2", "--warmup", "1", "--backbone", "resnet18"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Row {
  std::size_t size = 0, count = 0;
  std::string type;
  double time_us = 0, algbw = 0, busbw = 0;
  std::size_t errors = 0;
  std::string label;
};

struct Table {
  std::vector<Row> rows;
  std::string verdict;
};

Table table_of(const std::string& text) {
  Table table;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    table.verdict = line;
    if (line.starts_with('#')) continue;
    Row row;
    std::istringstream words(line);
    words >> row.size >> row.count >> row.type >> row.time_us >> row.algbw >> row.busbw >> row.errors;
    if (!words) continue;
    words >> row.label;
    table.rows.push_back(row);
  }
  return table;
}

class CommBenchRanks : public testing::TestWithParam<int> {};

TEST_P(CommBenchRanks, prints_a_table_of_both_types_and_the_gradient_and_a_verdict) {
  const int ranks = GetParam();
  const auto run = bench(ranks, few());
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, StartsWith(fmt::format("# {} rank{} on 1 node, averages by MPI (Open MPI", ranks,
                                              ranks == 1 ? "" : "s")));
  const auto table = table_of(run.out);
  ASSERT_EQ(table.rows.size(), 2U * 15) << run.out;  // 8, 16, ... 65536 and the gradient, of two types
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const auto& row = table.rows[i];
    const bool is_gradient = i % 15 == 14;
    const std::size_t convolutions = 14038710, norms = 9600;
    const std::size_t value_bytes = i < 15 ? 2 : 4;
    EXPECT_EQ(row.size, is_gradient ? value_bytes * convolutions + 4 * norms : std::size_t{8} << i % 15);
    EXPECT_EQ(row.count, is_gradient ? convolutions + norms : row.size / value_bytes);
    EXPECT_EQ(row.type, i >= 15 ? "FP32" : (is_gradient ? "FP16+FP32" : "FP16"));
    EXPECT_EQ(row.label, is_gradient ? "gradient" : "");
    EXPECT_GT(row.time_us, 0);
    EXPECT_EQ(row.errors, 0U);
    // Times have one digit behind the point, bandwidths three.
    const double algbw = ranks == 1 ? 0 : static_cast<double>(row.size) / row.time_us * 1e-3;
    EXPECT_NEAR(row.algbw, algbw, .0006 + row.algbw * .051 / row.time_us);
    const double factor = 2.0 * (ranks - 1) / ranks;
    EXPECT_NEAR(row.busbw, row.algbw * factor, .0005 * (1 + factor) + 1e-12);
  }
  EXPECT_THAT(table.verdict, StartsWith("ok: 30 averages, no wrong value"));
  EXPECT_THAT(table.verdict, HasSubstr(ranks == 1 ? "; one rank alone, so nothing travelled"
                                                  : "; the gradient in FP16+FP32: "));
}

INSTANTIATE_TEST_SUITE_P(Ranks, CommBenchRanks, testing::Values(1, 2, 4));

TEST(CommBench, checks_averages_that_cannot_be_exact) {
  const auto run = bench(3, few({"--type", "fp16"}));
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(table_of(run.out).verdict, StartsWith("ok: 15 averages, no wrong value"));
}

TEST(CommBench, runs_without_a_launcher_and_says_that_nothing_travelled) {
  const auto run = bench(0, few());
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("# 1 rank on 1 node"));
  EXPECT_THAT(table_of(run.out).verdict,
              HasSubstr("one rank alone, so nothing travelled: start it by mpirun or srun"));
}

TEST(CommBench, writes_the_table_as_json) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "bench.json";
  const auto run = bench(2, few({"--type", "fp32", "--json", file.string()}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(text_of(file));
  const auto rows = table_of(run.out).rows;
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["ok"], true);
  ASSERT_EQ(json["rows"].size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(json["rows"][i]["size"], rows[i].size);
    EXPECT_NEAR(json["rows"][i]["time_us"].get<double>(), rows[i].time_us, .0501);  // one digit is printed
  }
}

struct BadUse {
  const char* name;
  Words arguments;
  int exit_code;
  std::string error;
};

void PrintTo(const BadUse& bad, std::ostream* out) {
  *out << bad.name;
}

class CommBenchBadUse : public testing::TestWithParam<std::tuple<BadUse, int>> {};

TEST_P(CommBenchBadUse, is_told_once_in_all_with_its_exit_code) {
  const auto& [bad, ranks] = GetParam();
  const auto run = bench(ranks, few(bad.arguments));
  EXPECT_EQ(run.exit_code, bad.exit_code) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("error: " + bad.error + "\n"));
  EXPECT_EQ(run.err.find("error: "), run.err.rfind("error: ")) << run.err;
}

INSTANTIATE_TEST_SUITE_P(
    Table, CommBenchBadUse,
    testing::Combine(
        testing::Values(
            BadUse{"unknown",
                   {"--no-such-flag"},
                   2,
                   "unrecognised option '--no-such-flag'; see ssd_comm_bench --help"},
            BadUse{
                "abbreviated", {"--iter", "3"}, 2, "unrecognised option '--iter'; see ssd_comm_bench --help"},
            BadUse{"word", {"64M"}, 2, "'64M' belongs to no option; see ssd_comm_bench --help"},
            BadUse{"size",
                   {"--min-bytes", "many"},
                   2,
                   "--min-bytes 'many': not a size such as 8, 4K, 256M or 1G"},
            BadUse{"sizes", {"--min-bytes", "1M"}, 2, "--min-bytes 1M: above --max-bytes 64K"},
            BadUse{"type", {"--type", "int"}, 2, "--type 'int': not one of fp16, fp32, both"},
            BadUse{"folder",
                   {"--json", "/nowhere/a.json"},
                   1,
                   "cannot write '/nowhere/a.json': no folder '/nowhere'; make it first"}),
        testing::Values(0, 4)),
    [](const auto& item) {
      return std::string(std::get<0>(item.param).name) + "_on_" + std::to_string(std::get<1>(item.param));
    });

TEST(CommBench, refuses_a_gpu_where_there_is_none) {
  const auto run =
      run_program({SSD_MPIEXEC, "-np", "2", "-x", "CUDA_VISIBLE_DEVICES=", kCommBench, "--device", "cuda"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("error: --device cuda, but no GPU is visible on "));
  EXPECT_EQ(run.err.find("error: "), run.err.rfind("error: ")) << run.err;
}

TEST(CommBench, help_and_version_are_printed_once) {
  const auto help = run_program({SSD_MPIEXEC, "-np", "2", kCommBench, "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out,
              HasSubstr("Exit codes: 0 done, 1 failed, or an average had wrong values, 2 wrong usage.\n"));
  EXPECT_EQ(help.out.find("--max-bytes SIZE"), help.out.rfind("--max-bytes SIZE"));
  const auto version = run_program({kCommBench, "--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, StartsWith("ssd_comm_bench "));
}

}  // namespace
}  // namespace ssd
