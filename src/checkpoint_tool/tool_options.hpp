// The options of ssd_checkpoint: one table makes the parser and --help.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "checkpoint_tool/convert.hpp"

namespace ssd {

struct ToolOptions {
  std::filesystem::path file;
  std::filesystem::path compared;  // empty: not to be compared
  std::filesystem::path output;    // empty: nothing is written
  Part part = Part::weights;
  std::optional<DType> dtype;
};

// Nothing where the text asked for (--help, --version) is all there is to do: then it is in `text`.
struct ParsedToolOptions {
  std::optional<ToolOptions> options;
  std::string text;
};

// Throws UsageError, one line that names the option and its value. Pure.
ParsedToolOptions parse_tool_options(int argc, const char* const* argv);

}  // namespace ssd
