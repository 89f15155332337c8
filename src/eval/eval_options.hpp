// The options of ssd_eval: one table makes the parser and --help.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "coco/evaluation_parameters.hpp"
#include "record/split.hpp"

namespace ssd {

struct EvalOptions {
  std::filesystem::path ground_truth;  // an annotation JSON, or a folder of shards
  std::filesystem::path results;       // a COCO results JSON
  Split split = Split::val;            // of a folder of shards

  EvaluationParameters parameters;
  std::vector<std::string> categories;  // names or ids; empty: all
  std::string images;                   // ids with commas between, or a file of them; empty: all
  bool ignores_unknown_images = false;  // their detections are left out and counted

  bool shows_categories = false;
  std::filesystem::path json;  // empty: none
  bool json_has_arrays = false;
  std::filesystem::path plot;  // SVG; empty: none
  int threads = 0;             // 0: one for each core that this process may use, under mpirun one
};

// Nothing where the text asked for (--help, --version) is all there is to do: then it is in `text`.
struct ParsedEvalOptions {
  std::optional<EvalOptions> options;
  std::string text;
};

// Throws UsageError, one line that names the option and its value. Pure.
ParsedEvalOptions parse_eval_options(int argc, const char* const* argv);

}  // namespace ssd
