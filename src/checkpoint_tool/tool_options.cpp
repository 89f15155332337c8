#include "checkpoint_tool/tool_options.hpp"

#include <boost/program_options.hpp>
#include <sstream>
#include <vector>

#include "core/command_line.hpp"
#include "core/usage.hpp"

namespace ssd {
namespace {

namespace po = boost::program_options;

po::options_description visible_options() {
  po::options_description all("Options", kHelpColumns);
  all.add_options()  //
      ("compare", po::value<std::string>()->value_name("FILE"),
       "say which tensors differ from those of this checkpoint, and by how much")  //
      ("output", po::value<std::string>()->value_name("FILE"),
       "write a smaller checkpoint, with one of the next two")                           //
      ("weights-only", "of the model's state_dict alone")                                //
      ("strip-optimizer", "of everything but the optimizer's and its schedule's state")  //
      ("dtype", po::value<std::string>()->value_name("TYPE"),
       "fp32 or fp16: what the model's floating tensors become in it; default: as they are")  //
      ("help,h", "print this text and stop")                                                  //
      ("version", "print the version and stop");
  return all;
}

po::variables_map parse(int argc, const char* const* argv) {
  po::options_description all(visible_options());
  all.add_options()("file", po::value<Words>(), "");
  return parse_command_line("ssd_checkpoint", Words(argv + 1, argv + argc), all, "file");
}

std::string help_text() {
  std::ostringstream help;
  help << "Shows what is in a checkpoint, of ssd_train, of the reference, or any state_dict saved by "
          "PyTorch.\n"
          "  ssd_checkpoint models/epoch_64.pt\n"
          "  ssd_checkpoint models/epoch_64.pt --compare other/epoch_64.pt\n"
          "  ssd_checkpoint models/epoch_64.pt --output weights.pt --weights-only --dtype fp16\n\n"
       << visible_options()
       << "\nExit codes: 0 done, with --compare also equal; 1 failed, or with --compare different; 2 wrong "
          "usage.\n";
  return help.str();
}

}  // namespace

ParsedToolOptions parse_tool_options(int argc, const char* const* argv) {
  const auto values = parse(argc, argv);
  if (values.count("help") != 0) return {std::nullopt, help_text()};
  if (values.count("version") != 0) return {std::nullopt, "ssd_checkpoint " SSD_VERSION "\n"};
  ToolOptions options;
  const auto word = [&](const char* name) {
    return values.count(name) != 0 ? values[name].as<std::string>() : std::string();
  };
  const auto files = values.count("file") != 0 ? values["file"].as<Words>() : Words();
  expect_usage(files.size() == 1,
               fmt::format("takes one checkpoint, here are {}; see ssd_checkpoint --help", files.size()));
  options.file = files[0];
  options.compared = word("compare");
  options.output = word("output");
  const bool is_weights = values.count("weights-only") != 0,
             is_stripped = values.count("strip-optimizer") != 0;
  expect_usage(!options.output.empty() == (is_weights || is_stripped),
               "--output FILE goes with --weights-only or --strip-optimizer, and they with it");
  expect_usage(!is_weights || !is_stripped, "--weights-only and --strip-optimizer: one of them");
  options.part = is_weights ? Part::weights : Part::without_optimizer;
  const auto dtype = word("dtype");
  expect_usage(dtype.empty() || dtype == "fp32" || dtype == "fp16",
               fmt::format("--dtype '{}': not one of fp32, fp16", dtype));
  expect_usage(dtype.empty() || !options.output.empty(), "--dtype: needs --output FILE");
  if (!dtype.empty()) options.dtype = dtype == "fp32" ? DType::float32 : DType::float16;
  return {options, {}};
}

}  // namespace ssd
