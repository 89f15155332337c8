// The command line of ssd_preprocess: one table makes the parser and --help.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "preprocess/pack_options.hpp"
#include "record/split.hpp"

namespace ssd {

enum class PreprocessMode { pack, verify, info };

struct PreprocessOptions {
  PreprocessMode mode = PreprocessMode::pack;
  std::filesystem::path
      coco;  // empty: annotations and images, or voc, are given, or (verify, info) no source
  std::filesystem::path output;
  std::optional<Split> split;         // only this one
  std::filesystem::path annotations;  // a COCO-style JSON, where the set is not laid out as COCO
  std::filesystem::path images;
  std::filesystem::path voc;         // a Pascal VOC set; coco, annotations and images are empty then
  std::string image_set;             // its list for `split`; empty: the one named as the split
  std::vector<std::string> classes;  // of the VOC set, in the order of their labels; empty: all, by name
  PackOptions pack;
  unsigned threads = 1;
  bool force = false;

  bool has_source() const { return !coco.empty() || !annotations.empty() || !voc.empty(); }
};

// Nothing where the text asked for (--help, --version) is all there is to do: then it is in `text`.
struct ParsedPreprocessOptions {
  std::optional<PreprocessOptions> options;
  std::string text;
};

// Throws UsageError, one line that names the option and its value. Pure.
ParsedPreprocessOptions parse_options(int argc, const char* const* argv);

// "268435456", "256MiB", "256M", "256MB": K, M, G and KiB, MiB, GiB are powers of 1024, kB, MB, GB of 1000.
// Throws UsageError that names the option.
std::uint64_t parse_byte_count(std::string_view option, std::string_view text);

}  // namespace ssd
