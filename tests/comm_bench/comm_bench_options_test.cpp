#include "comm_bench/comm_bench_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm_bench/comm_bench.hpp"
#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

using testing::HasSubstr;

ParsedCommBenchOptions parse(std::vector<const char*> words) {
  words.insert(words.begin(), "ssd_comm_bench");
  return parse_comm_bench_options(static_cast<int>(words.size()), words.data());
}

CommBenchOptions options_of(std::vector<const char*> words) {
  return parse(std::move(words)).options.value();
}

TEST(CommBenchOptionsTest, are_by_default_those_of_the_struct) {
  const CommBenchOptions defaults;
  const auto options = options_of({});
  EXPECT_EQ(options.min_bytes, 8U);
  EXPECT_EQ(options.max_bytes, 256U << 20);
  EXPECT_EQ(options.min_bytes, defaults.min_bytes);
  EXPECT_EQ(options.max_bytes, defaults.max_bytes);
  EXPECT_EQ(options.types, defaults.types);
  EXPECT_EQ(options.benchmark.iterations, defaults.benchmark.iterations);
  EXPECT_EQ(options.benchmark.warmup, defaults.benchmark.warmup);
  EXPECT_EQ(options.device, defaults.device);
  EXPECT_STREQ(options.gradient.backbone, "resnet50");
  EXPECT_STREQ(defaults.gradient.backbone, "resnet50");
  EXPECT_TRUE(options.json.empty());
}

TEST(CommBenchOptionsTest, are_taken_from_the_command_line) {
  const auto options =
      options_of({"--min-bytes", "4K", "--max-bytes=1M", "--type", "fp16", "--iterations", "3", "--warmup",
                  "0", "--device", "cpu", "--backbone", "resnet18", "--json", "a.json"});
  EXPECT_EQ(options.min_bytes, 4096U);
  EXPECT_EQ(options.max_bytes, 1U << 20);
  EXPECT_EQ(options.types, std::vector{WireType::float16});
  EXPECT_EQ(options.benchmark.iterations, 3);
  EXPECT_EQ(options.benchmark.warmup, 0);
  EXPECT_EQ(options.device, DeviceChoice::cpu);
  EXPECT_STREQ(options.gradient.backbone, "resnet18");
  EXPECT_EQ(options.json, "a.json");
}

TEST(BytesFromText, takes_powers_of_1024) {
  EXPECT_EQ(bytes_from_text("8"), 8U);
  EXPECT_EQ(bytes_from_text("4K"), 4096U);
  EXPECT_EQ(bytes_from_text("256M"), 256U << 20);
  EXPECT_EQ(bytes_from_text("256MiB"), 256U << 20);
  EXPECT_EQ(bytes_from_text("2G"), std::size_t{2} << 30);
  for (const char* word :
       {"", "K", "-8", "+8", " 8", "8 ", "8k", "8KB", "8MB", "8T", "8KK", "8.5M", "0x10", "iB", "8iB",
        "99999999999999999999", "99999999999999999999G", "18446744073709551615G"}) {
    EXPECT_FALSE(bytes_from_text(word).has_value()) << word;
  }
}

struct WrongUse {
  std::vector<const char*> words;
  const char* message;
};

void PrintTo(const WrongUse& wrong, std::ostream* out) {
  *out << wrong.message;
}

class CommBenchWrongUse : public testing::TestWithParam<WrongUse> {};

TEST_P(CommBenchWrongUse, is_one_line_that_names_option_and_value) {
  EXPECT_EQ(message_of<UsageError>([] { parse(GetParam().words); }), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Table, CommBenchWrongUse,
    testing::Values(
        WrongUse{{"--max-bytes", "lots"}, "--max-bytes 'lots': not a size such as 8, 4K, 256M or 1G"},
        WrongUse{{"--min-bytes", "2"}, "--min-bytes 2: must be from 4 to 2G"},
        WrongUse{{"--max-bytes", "3G"}, "--max-bytes 3G: must be from 4 to 2G"},
        WrongUse{{"--min-bytes", "1M", "--max-bytes", "1K"}, "--min-bytes 1M: above --max-bytes 1K"},
        WrongUse{{"--type", "bf16"}, "--type 'bf16': not one of fp16, fp32, both"},
        WrongUse{{"--iterations", "0"}, "--iterations 0: must be 1 or more"},
        WrongUse{{"--iterations=-5"}, "--iterations -5: must be 1 or more"},
        WrongUse{{"--warmup=-1"}, "--warmup -1: must be 0 or more"},
        WrongUse{{"--iterations", "ten"},
                 "the argument ('ten') for option '--iterations' is invalid; see ssd_comm_bench --help"},
        WrongUse{{"--device", "gpu"}, "--device 'gpu': not one of auto, cuda, cpu"},
        WrongUse{{"--backbone", "vgg"},
                 "--backbone 'vgg': not one of resnet18, resnet34, resnet50, resnet101, resnet152"},
        WrongUse{{"--max", "1M"}, "unrecognised option '--max'; see ssd_comm_bench --help"},
        WrongUse{{"--no-such-flag"}, "unrecognised option '--no-such-flag'; see ssd_comm_bench --help"},
        WrongUse{{"1M"}, "'1M' belongs to no option; see ssd_comm_bench --help"}));

TEST(CommBenchOptionsTest, help_names_every_option_and_its_default) {
  const auto help = parse({"--help"}).text;
  for (const char* text : {"--min-bytes SIZE (=8)", "--max-bytes SIZE (=256M)", "--type TYPE (=both)",
                           "--iterations N (=20)", "--warmup N (=5)", "--device DEVICE (=auto)",
                           "--backbone NAME (=resnet50)", "--json FILE", "--version"}) {
    EXPECT_THAT(help, HasSubstr(text));
  }
  EXPECT_THAT(parse({"--version"}).text, testing::StartsWith("ssd_comm_bench "));
}

TEST(BenchmarkCases, are_for_each_type_the_sizes_and_then_the_gradient) {
  const auto cases = benchmark_cases(options_of({"--max-bytes", "16", "--backbone", "resnet18"}));
  ASSERT_EQ(cases.size(), 6U);
  std::vector<std::size_t> bytes, counts;
  std::vector<std::string> types;
  for (const auto& what : cases) {
    bytes.push_back(what.bytes());
    counts.push_back(what.count());
    types.push_back(what.type_name());
  }
  const std::size_t convolutions = 14038710, norms = 9600;
  EXPECT_EQ(bytes, (std::vector<std::size_t>{8, 16, 2 * convolutions + 4 * norms, 8, 16,
                                             4 * (convolutions + norms)}));
  EXPECT_EQ(counts, (std::vector<std::size_t>{4, 8, convolutions + norms, 2, 4, convolutions + norms}));
  EXPECT_EQ(types, (std::vector<std::string>{"FP16", "FP16", "FP16+FP32", "FP32", "FP32", "FP32"}));
  EXPECT_TRUE(cases[2].is_gradient && cases[5].is_gradient && !cases[1].is_gradient);
}

TEST(BenchmarkCases, never_average_more_than_their_size) {
  for (const auto& what :
       benchmark_cases(options_of({"--min-bytes", "7", "--max-bytes", "30", "--type", "fp32"}))) {
    EXPECT_EQ(what.bytes(), what.count() * 4);
  }
  EXPECT_EQ(benchmark_cases(options_of({"--min-bytes", "7", "--max-bytes", "30"}))[0].bytes(), 6U);
}

TEST(ExpectFreeMemory, names_what_is_needed_and_what_is_free) {
  expect_free_memory(1000000000, 16, 16000000000, "node1");
  EXPECT_EQ(message_of<Error>([] { expect_free_memory(1000000000, 16, 15900000000, "node1"); }),
            "averages of 1000000000 bytes need 16.0 GB on node1, and 15.9 GB are free there; take a smaller "
            "--max-bytes, or fewer ranks");
}

}  // namespace
}  // namespace ssd
