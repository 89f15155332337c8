#include "comm_bench/comm_bench_options.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <sstream>

#include "comm/mpi_session.hpp"
#include "core/command_line.hpp"
#include "core/error.hpp"
#include "core/usage.hpp"
#if SSD_WITH_CUDA
#include "comm/nccl_gradient_communicator.hpp"
#endif

namespace ssd {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kLeastBytes = 4;                    // one value in FP32
constexpr std::size_t kMostBytes = std::size_t{2} << 30;  // values of a message are counted in an int

po::typed_value<std::string>* text(const char* value, const char* name) {
  return po::value<std::string>()->default_value(value, *value == '\0' ? "none" : value)->value_name(name);
}

po::typed_value<int>* count(int value) {
  return po::value<int>()->default_value(value)->value_name("N");
}

struct OptionTable {
  po::options_description measured{"What is averaged", kHelpColumns};
  po::options_description machine{"How", kHelpColumns};
  po::options_description other{"Other", kHelpColumns};
  po::options_description hidden;

  OptionTable() {
    const CommBenchOptions defaults;
    measured.add_options()                                                                               //
        ("min-bytes", text("8", "SIZE"), "the first size; the next is twice as large; 8, 4K, 256M, 1G")  //
        ("max-bytes", text("256M", "SIZE"), "no size beyond this but the gradient's")                    //
        ("type", text("both", "TYPE"), "fp16, fp32 or both")                                             //
        ("backbone", text("resnet50", "NAME"),
         "whose gradient is averaged last: resnet18, resnet34, resnet50, resnet101 or resnet152");
    machine.add_options()                                                                               //
        ("iterations", count(defaults.benchmark.iterations), "averages that are timed, for each size")  //
        ("warmup", count(defaults.benchmark.warmup), "averages before them")                            //
        ("device", text("auto", "DEVICE"), "auto (CUDA where there is a GPU), cuda (NCCL) or cpu (MPI)");
    other.add_options()                                       //
        ("json", text("", "FILE"), "the table as JSON, too")  //
        ("help,h", "print this text and stop")                //
        ("version", "print the versions of the program and its libraries and stop");
    hidden.add_options()("unexpected", po::value<Words>(), "");
  }

  po::options_description visible() const {
    po::options_description all(kHelpColumns);
    all.add(measured).add(machine).add(other);
    return all;
  }

  po::variables_map parse(int argc, const char* const* argv) const {
    po::options_description all;
    all.add(visible()).add(hidden);
    auto values = parse_command_line("ssd_comm_bench", Words(argv + 1, argv + argc), all, "unexpected");
    if (values.count("unexpected") != 0) {
      throw UsageError(fmt::format("'{}' belongs to no option; see ssd_comm_bench --help",
                                   values["unexpected"].as<Words>().front()));
    }
    return values;
  }

  std::string help() const {
    std::ostringstream help;
    help << "Times averages of gradients over all ranks, and checks what they give, as nccl-tests do for an "
            "allreduce:\n"
            "the table on stdout, the verdict in its last line. One rank for each GPU, or for a share of the "
            "cores:\n"
            "  mpirun -np 8 ssd_comm_bench --max-bytes 64M\n\n"
         << visible() << "\nExit codes: 0 done, 1 failed, or an average had wrong values, 2 wrong usage.\n";
    return help.str();
  }
};

std::size_t bytes_of(const po::variables_map& values, const std::string& option) {
  const auto word = values[option].as<std::string>();
  const auto bytes = bytes_from_text(word);
  expect_usage(bytes.has_value(),
               fmt::format("--{} '{}': not a size such as 8, 4K, 256M or 1G", option, word));
  expect_usage(*bytes >= kLeastBytes && *bytes <= kMostBytes,
               fmt::format("--{} {}: must be from {} to 2G", option, word, kLeastBytes));
  return *bytes;
}

int at_least(const po::variables_map& values, const std::string& option, int least) {
  const int value = values[option].as<int>();
  expect_usage(value >= least, fmt::format("--{} {}: must be {} or more", option, value, least));
  return value;
}

std::vector<WireType> types_from_name(const std::string& name) {
  if (name == "fp16") return {WireType::float16};
  if (name == "fp32") return {WireType::float32};
  if (name == "both") return {WireType::float16, WireType::float32};
  throw UsageError(fmt::format("--type '{}': not one of fp16, fp32, both", name));
}

GradientSize gradient_of(const std::string& backbone) {
  std::string names;
  for (const auto& size : kGradientSizes) {
    if (backbone == size.backbone) return size;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", size.backbone);
  }
  throw UsageError(fmt::format("--backbone '{}': not one of {}", backbone, names));
}

CommBenchOptions options_of(const po::variables_map& values) {
  CommBenchOptions options;
  const auto word = [&](const char* name) { return values[name].as<std::string>(); };
  options.min_bytes = bytes_of(values, "min-bytes");
  options.max_bytes = bytes_of(values, "max-bytes");
  expect_usage(options.min_bytes <= options.max_bytes,
               fmt::format("--min-bytes {}: above --max-bytes {}", word("min-bytes"), word("max-bytes")));
  options.types = types_from_name(word("type"));
  options.gradient = gradient_of(word("backbone"));
  options.benchmark.iterations = at_least(values, "iterations", 1);
  options.benchmark.warmup = at_least(values, "warmup", 0);
  options.device = device_choice_from_name(word("device"));
  options.json = word("json");
  return options;
}

std::string version_text() {
  auto text = fmt::format("ssd_comm_bench {}\nMPI {}\n", SSD_VERSION, mpi_library_version());
#if SSD_WITH_CUDA
  const int nccl = nccl_version();
  return text + fmt::format("NCCL {}.{}.{}\n", nccl / 10000, nccl / 100 % 100, nccl % 100);
#else
  return text + "without CUDA\n";
#endif
}

}  // namespace

std::optional<std::size_t> bytes_from_text(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  auto unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.empty()) return number;
  if (unit.size() == 3 && unit.ends_with("iB")) unit = unit.substr(0, 1);
  const auto power = unit.size() == 1 ? std::string_view("KMG").find(unit) : std::string_view::npos;
  if (power == std::string_view::npos) return std::nullopt;
  const auto shift = 10 * (power + 1);
  if (number > (~std::size_t{0} >> shift)) return std::nullopt;
  return number << shift;
}

ParsedCommBenchOptions parse_comm_bench_options(int argc, const char* const* argv) {
  const OptionTable table;
  const auto values = table.parse(argc, argv);
  if (values.count("help") != 0) return {std::nullopt, table.help()};
  if (values.count("version") != 0) return {std::nullopt, version_text()};
  return {options_of(values), {}};
}

}  // namespace ssd
