#include "preprocess/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <charconv>
#include <cstdio>
#include <limits>
#include <sstream>
#include <thread>
#include <vector>

#include "core/command_line.hpp"
#include "core/error.hpp"
#include "core/utf8.hpp"
#include "record/hdf5.hpp"
#include "record/shard_data.hpp"

namespace ssd {
namespace {

namespace po = boost::program_options;

constexpr std::uint64_t kSmallestShardBytes = 4096;
constexpr std::uint64_t kLargestShardBytes = std::uint64_t{64} << 30;
constexpr unsigned kMostThreads = 1024;

// Cores that this process may run on.
unsigned allowed_cores() {
  return std::max(1U, std::thread::hardware_concurrency());
}

struct OptionTable {
  po::options_description input{"What is packed (default: both splits of COCO)", kHelpColumns};
  po::options_description output{"How it is packed", kHelpColumns};
  po::options_description existing{"What is there already", kHelpColumns};
  po::options_description other{"Other", kHelpColumns};
  po::options_description hidden;

  OptionTable() {
    input.add_options()                                                                        //
        ("split", po::value<std::string>()->value_name("train|val"), "pack this split alone")  //
        ("annotations", po::value<std::string>()->value_name("FILE"),
         "a COCO-style detection JSON with any classes, for sets laid out otherwise than COCO; needs --split "
         "and --images")  //
        ("images", po::value<std::string>()->value_name("DIR"),
         "the folder that the JSON's file names start from")  //
        ("voc", po::value<std::string>()->value_name("DIR"),
         "a Pascal VOC set: ImageSets/Main, Annotations (XML) and JPEGImages in DIR; its train.txt becomes "
         "the "
         "train split, its val.txt the val split; boxes of no size are left out, difficult objects become "
         "crowd boxes")  //
        ("image-set", po::value<std::string>()->value_name("NAME"),
         "with --voc and --split: the split is ImageSets/Main/NAME.txt (trainval, test, ...)")  //
        ("classes", po::value<std::string>()->value_name("A,B,..."),
         "with --voc: the classes in the order of their labels and category ids 1, 2, ...; default: all of "
         "Annotations in alphabetical order");
    output.add_options()  //
        ("shard-size", po::value<std::string>()->value_name("BYTES")->default_value("256MiB"),
         "JPEG data of a shard, with K, M, G (powers of 1024) or kB, MB, GB; about as much memory is used")  //
        ("threads", po::value<std::string>()->value_name("N"),
         fmt::format("threads that read and check pictures (default: allowed cores, here {})",
                     allowed_cores())
             .c_str())  //
        ("keep-original-jpeg",
         "store the pictures' files as they are; the default is to encode them anew without loss, with "
         "restart "
         "markers, so that training can decode a crop without the rest")  //
        ("shuffle-seed", po::value<std::string>()->value_name("N"),
         "shuffle the images once, so that each shard is a fair sample of the set; default: the order of the "
         "annotation file")  //
        ("limit", po::value<std::string>()->value_name("N"),
         "pack the first N images of that order alone")  //
        ("skip-bad",
         "leave out train images and annotations that cannot be used, keep such val images without a "
         "picture; the "
         "default is to list them all and to fail")  //
        ("force", "replace a complete set that is in OUT already");
    existing.add_options()  //
        ("verify",
         "read the set in OUT again: all digests, the CRC-32 of each picture; where a source is named too, "
         "also "
         "each record against its annotations and each picture's file; all that is wrong is listed")  //
        ("info", "print what the set in OUT holds: counts, sizes, classes with their boxes, options");
    other.add_options()                         //
        ("help,h", "print this text and stop")  //
        ("version", "print versions and stop");
    hidden.add_options()("paths", po::value<std::vector<std::string>>());
  }

  po::variables_map parse(int argc, const char* const* argv) const {
    po::options_description all;
    all.add(input).add(output).add(existing).add(other).add(hidden);
    return parse_command_line("ssd_preprocess", Words(argv + 1, argv + argc), all, "paths");
  }

  std::string help() const {
    std::ostringstream text;
    text << "Packs a COCO or Pascal VOC detection data set into the HDF5 shards that ssd_train and ssd_eval "
            "read. Once is "
            "enough.\n\n"
            "  ssd_preprocess [options] COCO OUT\n"
            "  ssd_preprocess [options] --split train|val --annotations FILE --images DIR OUT\n"
            "  ssd_preprocess [options] --voc DIR OUT\n"
            "  ssd_preprocess --verify [source as above] OUT\n"
            "  ssd_preprocess --info OUT\n\n"
            "COCO holds annotations/instances_{train,val}2017.json, train2017/ and val2017/. OUT is made "
            "where it is\n"
            "missing. Every picture is decoded to check it, and decoded again from its new encoding: the "
            "pixels are the\n"
            "same, or the file's bytes are kept. Equal input and options give equal bytes, for any number of "
            "threads\n"
            "and, under mpirun, of ranks, which share the shards. A run that was killed is gone on with: the "
            "shards\n"
            "it finished are verified and kept.\n\n"
         << input << "\n"
         << output << "\n"
         << existing << "\n"
         << other << "\nExit code: 0 done, 1 failed, 2 wrong usage.\n";
    return text.str();
  }
};

std::string version_text() {
  return fmt::format("ssd_preprocess {} (shard format {}, HDF5 {})\n", SSD_VERSION, kShardFormatVersion,
                     hdf5_versions());
}

std::string text_of(const po::variables_map& values, const char* name) {
  return values.count(name) == 0 ? std::string() : values[name].as<std::string>();
}

std::optional<Split> parse_split(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text == "train") return Split::train;
  if (text == "val") return Split::val;
  throw UsageError(fmt::format("--split '{}': train or val", text));
}

template <class Number>
Number parse_number(const char* option, const std::string& text, Number least, Number most) {
  Number number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size() || number < least || number > most)
    throw UsageError(fmt::format("{} '{}': a number from {} to {}", option, text, least, most));
  return number;
}

std::optional<std::uint64_t> parse_if_given(const po::variables_map& values, const char* name,
                                            std::uint64_t least, std::uint64_t most) {
  if (values.count(name) == 0) return std::nullopt;
  return parse_number(fmt::format("--{}", name).c_str(), values[name].as<std::string>(), least, most);
}

// "A,B" to A and B.
std::vector<std::string> parse_classes(const std::string& text) {
  std::vector<std::string> classes;
  std::istringstream stream(text);
  for (std::string name; std::getline(stream, name, ',');) {
    if (!is_utf8(name)) throw UsageError(fmt::format("--classes: '{}' is not UTF-8", printable(name)));
    if (name.empty() || std::find(classes.begin(), classes.end(), name) != classes.end())
      throw UsageError(fmt::format("--classes '{}': an empty name, or one that is given twice", text));
    classes.push_back(name);
  }
  return classes;
}

void place_voc_paths(const std::vector<std::string>& paths, PreprocessOptions& options) {
  if (!options.annotations.empty() || !options.images.empty())
    throw UsageError("--voc and --annotations, --images exclude each other");
  if (!options.image_set.empty() && !options.split)
    throw UsageError(
        fmt::format("--image-set '{}': --split says which split it is to be", options.image_set));
  if (paths.size() != 1)
    throw UsageError(fmt::format("{} paths given; with --voc only OUT is expected; see ssd_preprocess --help",
                                 paths.size()));
  options.output = paths[0];
}

void place_paths(const std::vector<std::string>& paths, PreprocessOptions& options) {
  if (!options.voc.empty()) return place_voc_paths(paths, options);
  if (!options.image_set.empty() || !options.classes.empty())
    throw UsageError("--image-set and --classes are for --voc DIR; see ssd_preprocess --help");
  if (options.annotations.empty() && options.images.empty()) {
    if (paths.size() != 2)
      throw UsageError(
          fmt::format("{} paths given; expected COCO and OUT; see ssd_preprocess --help", paths.size()));
    options.coco = paths[0];
    options.output = paths[1];
    return;
  }
  if (options.annotations.empty() || options.images.empty() || !options.split)
    throw UsageError("--annotations, --images and --split go together; see ssd_preprocess --help");
  if (paths.size() != 1)
    throw UsageError(fmt::format(
        "{} paths given; with --annotations only OUT is expected; see ssd_preprocess --help", paths.size()));
  options.output = paths[0];
}

// A source need not be named where a set that exists is looked at.
bool has_no_source(const std::vector<std::string>& paths, const PreprocessOptions& options) {
  return options.mode != PreprocessMode::pack && options.voc.empty() && options.annotations.empty() &&
         options.images.empty() && options.image_set.empty() && options.classes.empty() && paths.size() == 1;
}

PreprocessMode parse_mode(const po::variables_map& values) {
  const bool verifies = values.count("verify") != 0, informs = values.count("info") != 0;
  if (verifies && informs) throw UsageError("--verify and --info exclude each other");
  if (!verifies && !informs) return PreprocessMode::pack;
  for (const auto* option : {"keep-original-jpeg", "shuffle-seed", "limit", "skip-bad", "force"}) {
    if (values.count(option) != 0)
      throw UsageError(
          fmt::format("--{} is for packing, not for --{}", option, verifies ? "verify" : "info"));
  }
  return verifies ? PreprocessMode::verify : PreprocessMode::info;
}

PackOptions parse_pack_options(const po::variables_map& values) {
  PackOptions options;
  const auto shard_size = text_of(values, "shard-size");
  options.shard_bytes = parse_byte_count("--shard-size", shard_size);
  if (options.shard_bytes < kSmallestShardBytes || options.shard_bytes > kLargestShardBytes)
    throw UsageError(fmt::format("--shard-size '{}': from 4 KiB to 64 GiB", shard_size));
  options.skip_bad = values.count("skip-bad") != 0;
  options.keep_original_jpeg = values.count("keep-original-jpeg") != 0;
  options.shuffle_seed = parse_if_given(values, "shuffle-seed", 0, std::numeric_limits<std::uint64_t>::max());
  options.limit = parse_if_given(values, "limit", 1, std::numeric_limits<std::uint32_t>::max());
  return options;
}

}  // namespace

ParsedPreprocessOptions parse_options(int argc, const char* const* argv) {
  const OptionTable table;
  const auto values = table.parse(argc, argv);
  if (values.count("help") != 0) return {std::nullopt, table.help()};
  if (values.count("version") != 0) return {std::nullopt, version_text()};
  PreprocessOptions options;
  options.mode = parse_mode(values);
  options.split = parse_split(text_of(values, "split"));
  options.annotations = text_of(values, "annotations");
  options.images = text_of(values, "images");
  options.voc = text_of(values, "voc");
  options.image_set = text_of(values, "image-set");
  options.classes = parse_classes(text_of(values, "classes"));
  options.pack = parse_pack_options(values);
  options.threads = static_cast<unsigned>(
      parse_if_given(values, "threads", 1, kMostThreads).value_or(std::uint64_t{allowed_cores()}));
  options.force = values.count("force") != 0;
  const auto paths = values.count("paths") == 0 ? std::vector<std::string>()
                                                : values["paths"].as<std::vector<std::string>>();
  if (has_no_source(paths, options)) {
    options.output = paths[0];
  } else {
    place_paths(paths, options);
  }
  if (options.mode == PreprocessMode::info && options.has_source())
    throw UsageError("--info takes OUT alone; see ssd_preprocess --help");
  return {options, {}};
}

std::uint64_t parse_byte_count(std::string_view option, std::string_view text) {
  struct Unit {
    std::string_view name;
    std::uint64_t bytes;
  };
  constexpr std::array<Unit, 11> kUnits{{{"", 1},
                                         {"B", 1},
                                         {"K", 1U << 10},
                                         {"KiB", 1U << 10},
                                         {"M", 1U << 20},
                                         {"MiB", 1U << 20},
                                         {"G", 1U << 30},
                                         {"GiB", 1U << 30},
                                         {"kB", 1'000},
                                         {"MB", 1'000'000},
                                         {"GB", 1'000'000'000}}};
  std::uint64_t number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix(result.ptr, static_cast<std::size_t>(text.data() + text.size() - result.ptr));
  const auto unit =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return u.name == suffix; });
  if (result.ec != std::errc{} || unit == kUnits.end() ||
      number > std::numeric_limits<std::uint64_t>::max() / unit->bytes)
    throw UsageError(fmt::format("{} '{}': a number of bytes such as 256MiB", option, text));
  return number * unit->bytes;
}

}  // namespace ssd
