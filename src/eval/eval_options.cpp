#include "eval/eval_options.hpp"

#include <boost/program_options.hpp>
#include <charconv>
#include <sstream>
#include <string_view>

#include "core/command_line.hpp"
#include "core/error.hpp"
#include "core/usage.hpp"
#include "record/hdf5.hpp"

namespace ssd {
namespace {

namespace po = boost::program_options;

constexpr int kMostThreads = 1024;

po::typed_value<std::string>* text(const char* value, const char* name) {
  return po::value<std::string>()->default_value(value)->value_name(name);
}

// Empty unless given; shown: what --help says of that.
po::typed_value<std::string>* optional_text(const char* shown, const char* name) {
  return po::value<std::string>()->default_value("", shown)->value_name(name);
}

struct OptionTable {
  po::options_description measure{"What is measured (defaults: those of pycocotools)", kHelpColumns};
  po::options_description output{"Output, beside the twelve lines", kHelpColumns};
  po::options_description other{"Other", kHelpColumns};
  po::options_description hidden;

  OptionTable() {
    measure.add_options()  //
        ("max-dets", text("1,10,100", "A,B,C"),
         "limits of detections of an image and category, ascending")  //
        ("iou-thresholds", text("0.5:0.95:10", "LIST"),
         "numbers with commas between, or FIRST:LAST:COUNT for COUNT numbers as numpy.linspace makes them")  //
        ("recall-thresholds", text("0:1:101", "LIST"), "the same, ascending")  //
        ("area-ranges", text("all:0:1e10,small:0:1024,medium:1024:9216,large:9216:1e10", "LIST"),
         "NAME:LOW:HIGH in square pixels, both ends inside; the twelve lines show all, small, medium and "
         "large")                                                                                          //
        ("categories", optional_text("all", "LIST"), "only these, names or ids with commas between")       //
        ("images", optional_text("all", "LIST|FILE"), "only these, ids with commas between or in a file")  //
        ("class-agnostic", "boxes of all categories as of one (useCats = 0)")                              //
        ("ignore-unknown",
         "leave out and count detections of images that are not in the ground truth, instead of failing");
    output.add_options()                                                             //
        ("per-category", "a table of AP by category")                                //
        ("json", optional_text("none", "FILE"), "all numbers in full precision")     //
        ("arrays", "put the arrays precision, recall and scores into the JSON too")  //
        ("plot", optional_text("none", "FILE"), "precision over recall as an SVG, the mean over categories");
    other.add_options()                                                         //
        ("split", text("val", "SPLIT"), "of a folder of shards: val or train")  //
        ("threads", po::value<int>()->default_value(0, "all cores; 1 under mpirun")->value_name("N"),
         "threads of each process")             //
        ("help,h", "print this text and stop")  //
        ("version", "print versions and stop");
    hidden.add_options()("files", po::value<std::vector<std::string>>(), "");
  }

  po::options_description visible() const {
    po::options_description all(kHelpColumns);
    all.add(measure).add(output).add(other);
    return all;
  }

  po::variables_map parse(int argc, const char* const* argv) const {
    po::options_description all;
    all.add(visible()).add(hidden);
    return parse_command_line("ssd_eval", Words(argv + 1, argv + argc), all, "files");
  }

  std::string help() const {
    std::ostringstream help;
    help << "Evaluates detections as pycocotools does, to the last bit: the twelve numbers of COCO for "
            "boxes.\n"
            "  ssd_eval instances_val2017.json results.json\n"
            "  ssd_eval /scratch/shards results.json       (the validation set of a folder of shards)\n"
            "  mpirun -np 4 ssd_eval ...                   (the same numbers, images shared among the "
            "ranks)\n\n"
         << visible()
         << "\n-1 stands where there is no ground truth. Exit codes: 0 done, 1 failed, 2 wrong usage.\n";
    return help.str();
  }
};

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  std::size_t begin = 0;
  for (;;) {
    const auto end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

template <class Number>
Number number_of(const char* option, std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  expect_usage(error == std::errc() && end == word.data() + word.size() && !word.empty(),
               fmt::format("--{}: '{}' is not a {}", option, word,
                           std::is_integral_v<Number> ? "whole number" : "number"));
  return number;
}

// "0.5,0.75" or "FIRST:LAST:COUNT".
std::vector<double> thresholds_of(const char* option, const std::string& text) {
  std::vector<double> values;
  if (const auto range = parts_of(text, ':'); range.size() == 3) {
    const auto count = number_of<int>(option, range[2]);
    expect_usage(count >= 2 && count <= 10000,
                 fmt::format("--{} {}: its count must be from 2 to 10000", option, text));
    return linspace(number_of<double>(option, range[0]), number_of<double>(option, range[1]),
                    static_cast<std::size_t>(count));
  }
  for (const auto& word : parts_of(text, ',')) values.push_back(number_of<double>(option, word));
  return values;
}

std::vector<AreaRange> area_ranges_of(const std::string& text) {
  std::vector<AreaRange> ranges;
  for (const auto& word : parts_of(text, ',')) {
    const auto fields = parts_of(word, ':');
    expect_usage(fields.size() == 3,
                 fmt::format("--area-ranges: '{}' is not NAME:LOW:HIGH, as in small:0:1024", word));
    ranges.push_back({fields[0], number_of<double>("area-ranges", fields[1]),
                      number_of<double>("area-ranges", fields[2])});
  }
  return ranges;
}

EvaluationParameters parameters_of(const po::variables_map& values) {
  const auto word = [&](const char* name) { return values[name].as<std::string>(); };
  EvaluationParameters parameters;
  parameters.max_detections.clear();
  for (const auto& limit : parts_of(word("max-dets"), ','))
    parameters.max_detections.push_back(number_of<int>("max-dets", limit));
  expect_usage(parameters.max_detections.size() == 3,
               fmt::format("--max-dets {}: must be three numbers, as in 1,10,100", word("max-dets")));
  parameters.iou_thresholds = thresholds_of("iou-thresholds", word("iou-thresholds"));
  parameters.recall_thresholds = thresholds_of("recall-thresholds", word("recall-thresholds"));
  parameters.area_ranges = area_ranges_of(word("area-ranges"));
  parameters.use_categories = values.count("class-agnostic") == 0;
  try {
    parameters.validate();
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  return parameters;
}

EvalOptions options_of(const po::variables_map& values) {
  EvalOptions options;
  const auto word = [&](const char* name) { return values[name].as<std::string>(); };
  std::vector<std::string> files;
  if (values.count("files") != 0) files = values["files"].as<std::vector<std::string>>();
  expect_usage(files.size() == 2,
               fmt::format("{} files given; ssd_eval takes two, the ground truth and the results; "
                           "see ssd_eval --help",
                           files.size()));
  options.ground_truth = files[0];
  options.results = files[1];
  expect_usage(word("split") == "val" || word("split") == "train",
               fmt::format("--split '{}': not one of val, train", word("split")));
  options.split = word("split") == "val" ? Split::val : Split::train;
  options.parameters = parameters_of(values);
  options.categories = parts_of(word("categories"), ',');
  options.images = word("images");
  options.ignores_unknown_images = values.count("ignore-unknown") != 0;
  options.shows_categories = values.count("per-category") != 0;
  options.json = word("json");
  options.json_has_arrays = values.count("arrays") != 0;
  expect_usage(!options.json_has_arrays || !options.json.empty(), "--arrays goes with --json FILE");
  options.plot = word("plot");
  options.threads = values["threads"].as<int>();
  expect_usage(options.threads >= 0 && options.threads <= kMostThreads,
               fmt::format("--threads {}: must be from 0 (all cores) to {}", options.threads, kMostThreads));
  return options;
}

}  // namespace

ParsedEvalOptions parse_eval_options(int argc, const char* const* argv) {
  const OptionTable table;
  const auto values = table.parse(argc, argv);
  if (values.count("help") != 0) return {std::nullopt, table.help()};
  if (values.count("version") != 0) {
    return {std::nullopt, fmt::format("ssd_eval {}\nHDF5 {}\n", SSD_VERSION, hdf5_versions())};
  }
  return {options_of(values), {}};
}

}  // namespace ssd
