#include "train/train_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <sstream>

#include "core/command_line.hpp"
#include "core/error.hpp"
#include "core/usage.hpp"
#include "train/version.hpp"

namespace ssd {
namespace {

namespace po = boost::program_options;

constexpr const char* kDefaultData = "/scratch/shards";
constexpr std::int64_t kMostBucketKib = 1 << 20;  // 1 GiB: above the gradients of every backbone
constexpr int kMostBenchmarkIterations = 1'000'000;
constexpr const char* kDefaultSaveFolder = "./models";

// Second names of options; Boost.ProgramOptions knows one long name only.
struct Alias {
  std::string_view name, meaning;
};
constexpr std::array kAliases{Alias{"--bs", "--batch-size"},
                              Alias{"--ebs", "--eval-batch-size"},
                              Alias{"--lr", "--learning-rate"},
                              Alias{"--wd", "--weight-decay"},
                              Alias{"--amp", "--fp16"},
                              Alias{"--no-amp", "--no-fp16"},
                              Alias{"--local-rank", "--local_rank"}};

std::vector<std::string> rewrite_arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    const auto name = argument.substr(0, argument.find('='));
    for (const auto& alias : kAliases) {
      if (name == alias.name) argument.replace(0, name.size(), alias.meaning);
    }
    // --save takes a folder or nothing.
    if (argument == "--save") {
      const bool has_value = i + 1 < argc && argv[i + 1][0] != '-';
      argument += std::string("=") + (has_value ? argv[++i] : kDefaultSaveFolder);
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

std::string default_data() {
  const char* data = std::getenv("SSD_DATA");
  return data != nullptr && *data != '\0' ? data : kDefaultData;
}

template <class T>
po::typed_value<T>* with_default(T value, const char* name) {
  return po::value<T>()->default_value(value)->value_name(name);
}

std::string text_of(double value) {
  return fmt::format("{}", value);
}

po::typed_value<double>* number(double value, const char* name = "X") {
  return po::value<double>()->default_value(value, text_of(value))->value_name(name);
}

Words words_of(const std::vector<int>& epochs) {
  Words result;
  for (const int epoch : epochs) result.push_back(std::to_string(epoch));
  return result;
}

po::typed_value<Words>* words(const Words& value, const char* name) {
  return po::value<Words>()
      ->multitoken()
      ->default_value(value, fmt::format("{}", fmt::join(value, " ")))
      ->value_name(name);
}

po::typed_value<std::string>* text(const std::string& value, const char* name) {
  return po::value<std::string>()->default_value(value, value.empty() ? "none" : value)->value_name(name);
}

struct OptionTable {
  po::options_description input{"Data and model", kHelpColumns};
  po::options_description recipe{"Training recipe", kHelpColumns};
  po::options_description augmentation{"Augmentation (uniform ranges: low high)", kHelpColumns};
  po::options_description machine{"Machine", kHelpColumns};
  po::options_description output{"Output", kHelpColumns};
  po::options_description benchmark{"Benchmarks", kHelpColumns};
  po::options_description other{"Other", kHelpColumns};
  po::options_description hidden;

  OptionTable() {
    const TrainOptions defaults;
    add_input();
    add_recipe(defaults);
    add_augmentation(defaults.augmentation);
    add_machine(defaults);
    add_output(defaults);
    benchmark.add_options()  //
        ("benchmark-iterations", with_default(defaults.benchmark_iterations, "N"),
         "iterations that are timed")  //
        ("benchmark-warmup", with_default(defaults.benchmark_warmup, "N"), "iterations before them");
    other.add_options()                                                              //
        ("help,h", "print this text and stop")                                       //
        ("version", "print the versions of the program and its libraries and stop")  //
        ("print-config", "print every option with its value and stop");
    hidden.add_options()("local_rank", po::value<int>(), "")("unexpected", po::value<Words>(), "");
  }

  po::options_description visible() const {
    po::options_description all(kHelpColumns);
    all.add(input).add(recipe).add(augmentation).add(machine).add(output).add(benchmark).add(other);
    return all;
  }

 private:
  void add_input() {
    input.add_options()  //
        ("data,d", text(default_data(), "DIR"),
         "the shards that ssd_preprocess made; default $SSD_DATA, else /scratch/shards")  //
        ("stage-dir", text("", "DIR"),
         "on each node's own disk: copy the shards there first, where they are not yet, and read them "
         "there")  //
        ("mode", text("training", "MODE"),
         "training, evaluation, benchmark-training or benchmark-inference")  //
        ("backbone", text("resnet50", "NAME"),
         "resnet18, resnet34, resnet50, resnet101 or resnet152; with --checkpoint that of the file")  //
        ("backbone-path", text("", "FILE"),
         "torchvision's ResNet weights to start from; without it they are random")  //
        ("checkpoint", po::value<Words>()->multitoken()->value_name("FILE..."),
         "go on from this file, or evaluate it; of several (a glob) the newest epoch; auto: the newest that "
         "is whole in "
         "the folder of --save, or from the start where there is none");
  }

  void add_recipe(const TrainOptions& defaults) {
    recipe.add_options()                                                                                   //
        ("epochs,e", with_default(defaults.epochs, "N"), "epochs to run")                                  //
        ("batch-size", with_default(defaults.batch_size, "N"), "images per rank and iteration (or --bs)")  //
        ("learning-rate", number(defaults.learning_rate),
         "for a global batch of 32; the rate used is this * ranks * batch-size / 32 (or --lr)")    //
        ("momentum,m", number(defaults.momentum), "of SGD")                                        //
        ("weight-decay", number(defaults.weight_decay), "not for biases and BatchNorm (or --wd)")  //
        ("warmup", with_default(defaults.warmup_iterations, "N"),
         "iterations in which the rate grows from 0")  //
        ("multistep", words(words_of(defaults.multistep), "EPOCH..."),
         "the rate is divided by 10 before these epochs, counted from 0; or none")  //
        ("evaluation", words(words_of(defaults.evaluation), "EPOCH..."),
         "evaluate after these epochs, counted from 0; or none, or last")  //
        ("eval-batch-size", with_default(defaults.evaluation_batch_size, "N"),
         "images per rank (or --ebs)")  //
        ("eval-annotated-only",
         "run only images that have boxes, as the reference does (4,952 of COCO's 5,000)")  //
        ("wait-for-scores",
         "training waits for an evaluation's numbers; without it they are computed beside it")(
            "skip-crowd", "do not train on crowd boxes (the reference does)")  //
        ("skip-nonfinite",
         "leave out steps whose loss or gradients are not finite, and count them; without it such a loss "
         "ends "
         "the run")  //
        ("seed,s", po::value<std::int64_t>()->value_name("N"),
         "of weights, order and augmentation; default: random, logged");
  }

  void add_augmentation(const AugmentationOptions& defaults) {
    const auto range = [](const Range& value) {
      return words({text_of(value.low), text_of(value.high)}, "LOW HIGH");
    };
    augmentation.add_options()                                                                            //
        ("crop-side", range(defaults.crop_side), "of a crop, in parts of the picture's width or height")  //
        ("crop-aspect", range(defaults.crop_aspect), "width to height of a crop, both in parts")          //
        ("hue", range(defaults.hue_degrees), "degrees")                                                   //
        ("saturation", range(defaults.saturation), "factor")                                              //
        ("contrast", range(defaults.contrast), "factor about the level 128")                              //
        ("brightness", range(defaults.brightness), "factor")                                              //
        ("flip-probability", number(defaults.flip_probability, "P"), "of a horizontal flip");
  }

  void add_machine(const TrainOptions& defaults) {
    machine.add_options()                                                                    //
        ("device", text("auto", "DEVICE"), "auto (CUDA where there is a GPU), cuda or cpu")  //
        ("no-cuda", "the same as --device cpu")                                              //
        ("fp16",
         "half precision: FP16 on a GPU, BF16 on a CPU that has it; FP16 gradients, dynamic loss scaling (or "
         "--amp)")                                                     //
        ("no-fp16", "FP32, the default (or --no-amp)")                 //
        ("allow-tf32", "TF32 on a GPU for what is FP32, the default")  //
        ("no-allow-tf32", "no TF32")                                   //
        ("data-layout", text("auto", "LAYOUT"),
         "channels_first, channels_last or auto (last with --fp16)")  //
        ("num-workers", with_default(defaults.num_workers, "N"),
         "loader threads per rank at most; fewer where cores are few")  //
        ("decoded-cache-gib", number(defaults.decoded_cache_gib, "GIB"),
         "memory in which each rank keeps decoded training pictures for later epochs; 0: none")  //
        ("cuda-graph", "replay the step as a CUDA graph: for small batches on one GPU")(
            "gradient-type", text("auto", "TYPE"),
            "what gradients travel as: fp16, bf16, fp32 or auto (fp16 with --fp16)")  //
        ("check-weights", with_default<std::int64_t>(0, "N"),
         "compare all ranks' weights every N iterations; 0: at start and when saving")  //
        ("watchdog-seconds", number(defaults.watchdog_seconds, "S"),
         "end the job, and name the rank, when one has been stuck for so long; 0: never")  //
        ("first-bucket-kib", with_default(defaults.buckets.first_bucket_bytes / 1024, "KIB"),
         "size of the first gradient bucket")  //
        ("bucket-kib", with_default(defaults.buckets.bucket_bytes / 1024, "KIB"),
         "size of the other gradient buckets");
  }

  void add_output(const TrainOptions& defaults) {
    output.add_options()  //
        ("save", po::value<std::string>()->value_name("[DIR]"),
         "write epoch_N.pt after each epoch; without DIR in ./models")  //
        ("save-every-iterations", with_default<std::int64_t>(0, "N"),
         "also save every N iterations, as iteration_N.pt; the newest stays")(
            "save-every-minutes", number(0), "also save after so many minutes")(
            "keep", with_default(0, "N"), "checkpoints that stay in the folder of --save; 0: every epoch's")(
            "log-interval", with_default(defaults.log_interval, "N"), "iterations between log lines")  //
        ("json-summary", text("", "FILE"), "log as JSON lines in DLLogger's form, appended")           //
        ("plot", text("", "FILE"),
         "loss, AP and AP50 over the epochs of this run as an SVG, written anew after each evaluation")  //
        ("results", text("", "FILE"), "detections of the last evaluation as a COCO results JSON");
  }
};

template <class T>
T parse_number(const std::string& option, const std::string& word) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) {
    throw UsageError(fmt::format("--{} '{}': not a number", option, word));
  }
  return value;
}

template <class T>
T at_least(const po::variables_map& values, const char* option, T least) {
  const auto value = values[option].as<T>();
  // Above the largest is infinity.
  expect_usage(value >= least && value <= std::numeric_limits<T>::max(),
               fmt::format("--{} {}: must be {} or more", option, value, least));
  return value;
}

template <class T>
T within(const po::variables_map& values, const char* option, T least, T most) {
  const auto value = values[option].as<T>();
  expect_usage(value >= least && value <= most,
               fmt::format("--{} {}: must be from {} to {}", option, value, least, most));
  return value;
}

template <class T>
T choose(const std::string& option, const std::string& word,
         std::initializer_list<std::pair<const char*, T>> choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) {
    if (word == name) return value;
    names.emplace_back(name);
  }
  throw UsageError(fmt::format("--{} '{}': not one of {}", option, word, fmt::join(names, ", ")));
}

std::vector<int> epochs_of(const po::variables_map& values, const std::string& option, int last_epoch) {
  std::vector<int> epochs;
  for (const auto& word : values[option].as<Words>()) {
    if (word == "none") continue;
    const int epoch = word == "last" ? last_epoch : parse_number<int>(option, word);
    expect_usage(epoch >= 0, fmt::format("--{} {}: epochs count from 0", option, word));
    epochs.push_back(epoch);
  }
  return epochs;
}

Range range_of(const po::variables_map& values, const std::string& option) {
  const auto& two = values[option].as<Words>();
  expect_usage(two.size() == 2,
               fmt::format("--{}: takes two numbers, low and high; here are {}", option, two.size()));
  const Range range{parse_number<double>(option, two[0]), parse_number<double>(option, two[1])};
  expect_usage(range.low <= range.high, fmt::format("--{} {} {}: low is above high", option, two[0], two[1]));
  return range;
}

// Options that say something about the same thing.
std::string subject_of(const std::string& option) {
  if (option == "no-fp16") return "fp16";
  if (option == "no-allow-tf32") return "allow-tf32";
  if (option == "no-cuda") return "device";
  return option;
}

po::variables_map parse_words(const Words& words, const OptionTable& table) {
  po::options_description all;
  all.add(table.visible()).add(table.hidden);
  auto values = parse_command_line("ssd_train", words, all, "unexpected", subject_of);
  if (values.count("unexpected") != 0) {
    const auto word = values["unexpected"].as<Words>().front();
    throw UsageError(
        fmt::format("'{}' belongs to no option; the folder of shards is given as --data {}", word, word));
  }
  return values;
}

std::string value_text(const po::variable_value& value) {
  const auto& any = value.value();
  if (const auto* word = boost::any_cast<std::string>(&any)) return *word;
  if (const auto* list = boost::any_cast<Words>(&any)) return fmt::format("{}", fmt::join(*list, " "));
  if (const auto* number = boost::any_cast<int>(&any)) return fmt::format("{}", *number);
  if (const auto* number = boost::any_cast<std::int64_t>(&any)) return fmt::format("{}", *number);
  if (const auto* number = boost::any_cast<double>(&any)) return text_of(*number);
  return "";
}

std::string configuration_of(const po::variables_map& values, const OptionTable& table) {
  std::string lines;
  const auto visible = table.visible();
  for (const auto& option : visible.options()) {
    const auto& name = option->long_name();
    if (name == "help" || name == "version" || name == "print-config") continue;
    const bool is_flag = option->semantic()->max_tokens() == 0;
    const bool is_set = values.count(name) != 0;
    lines += fmt::format("{} = {}\n", name,
                         is_flag ? (is_set ? "yes" : "no") : (is_set ? value_text(values[name]) : ""));
  }
  return lines;
}

TrainOptions options_of(const po::variables_map& values) {
  TrainOptions options;
  const auto word = [&](const char* name) { return values[name].as<std::string>(); };
  const auto has = [&](const char* name) { return values.count(name) != 0; };
  options.data = word("data");
  options.stage_dir = word("stage-dir");
  options.mode = choose<Mode>("mode", word("mode"),
                              {{"training", Mode::training},
                               {"evaluation", Mode::evaluation},
                               {"benchmark-training", Mode::benchmark_training},
                               {"benchmark-inference", Mode::benchmark_inference}});
  options.device = choose<DeviceChoice>(
      "device", word("device"),
      {{"auto", DeviceChoice::automatic}, {"cuda", DeviceChoice::cuda}, {"cpu", DeviceChoice::cpu}});
  options.layout = choose<DataLayout>("data-layout", word("data-layout"),
                                      {{"auto", DataLayout::automatic},
                                       {"channels_first", DataLayout::channels_first},
                                       {"channels_last", DataLayout::channels_last}});
  if (has("no-cuda")) options.device = DeviceChoice::cpu;
  options.use_half = has("fp16");
  options.gradient_type = choose<GradientType>("gradient-type", word("gradient-type"),
                                               {{"auto", GradientType::automatic},
                                                {"fp16", GradientType::float16},
                                                {"bf16", GradientType::bfloat16},
                                                {"fp32", GradientType::float32}});
  options.weights_check_interval = at_least<std::int64_t>(values, "check-weights", 0);
  options.watchdog_seconds = at_least(values, "watchdog-seconds", 0.0);
  options.skips_nonfinite = has("skip-nonfinite");
  options.allow_tf32 = !has("no-allow-tf32");
  options.use_step_graph = has("cuda-graph");
  const auto backbone = backbone_from_name(word("backbone"));
  if (!values["backbone"].defaulted()) options.backbone = backbone;
  options.backbone_path = word("backbone-path");
  if (has("checkpoint")) {
    const auto& files = values["checkpoint"].as<Words>();
    options.from_newest_saved = files == Words{"auto"};
    if (!options.from_newest_saved) options.checkpoints.assign(files.begin(), files.end());
  }
  if (has("save")) options.save_folder = word("save");
  options.epochs = at_least(values, "epochs", 0);
  options.batch_size = at_least(values, "batch-size", 1);
  options.evaluation_batch_size = at_least(values, "eval-batch-size", 1);
  if (has("seed")) options.seed = static_cast<std::uint64_t>(at_least<std::int64_t>(values, "seed", 0));
  options.learning_rate = at_least(values, "learning-rate", 0.0);
  options.momentum = at_least(values, "momentum", 0.0);
  options.weight_decay = at_least(values, "weight-decay", 0.0);
  options.warmup_iterations = at_least<std::int64_t>(values, "warmup", 0);
  options.multistep = epochs_of(values, "multistep", std::max(0, options.epochs - 1));
  options.evaluation = epochs_of(values, "evaluation", std::max(0, options.epochs - 1));
  options.evaluation_records =
      has("eval-annotated-only") ? EvaluationRecords::with_annotations : EvaluationRecords::all;
  options.waits_for_scores = has("wait-for-scores");
  options.crowd = has("skip-crowd") ? CrowdBoxes::leave_out : CrowdBoxes::train_on;
  options.augmentation = {
      range_of(values, "crop-side"),          range_of(values, "crop-aspect"), range_of(values, "hue"),
      range_of(values, "saturation"),         range_of(values, "contrast"),    range_of(values, "brightness"),
      values["flip-probability"].as<double>()};
  options.augmentation.validate();
  options.num_workers = at_least(values, "num-workers", 1);
  options.decoded_cache_gib = within(values, "decoded-cache-gib", 0.0, 1e6);
  options.buckets = {within<std::int64_t>(values, "first-bucket-kib", 1, kMostBucketKib) * 1024,
                     within<std::int64_t>(values, "bucket-kib", 1, kMostBucketKib) * 1024};
  options.save_interval = at_least<std::int64_t>(values, "save-every-iterations", 0);
  options.save_minutes = at_least(values, "save-every-minutes", 0.0);
  options.kept_checkpoints = at_least(values, "keep", 0);
  options.log_interval = at_least(values, "log-interval", 1);
  options.json_summary = word("json-summary");
  options.plot = word("plot");
  options.results = word("results");
  options.benchmark_iterations = within(values, "benchmark-iterations", 1, kMostBenchmarkIterations);
  options.benchmark_warmup = within(values, "benchmark-warmup", 0, kMostBenchmarkIterations);
  expect_usage(
      !trains(options.mode) || options.batch_size >= 2,
      "--batch-size 1: training needs 2 or more images per rank, since the last BatchNorm sees a 1x1 map");
  const bool wants_folder = options.from_newest_saved || options.save_interval > 0 ||
                            options.save_minutes > 0 || options.kept_checkpoints > 0;
  expect_usage(!wants_folder || options.save_folder,
               "--checkpoint auto, --save-every-iterations, --save-every-minutes and --keep need the folder: "
               "--save DIR");
  expect_usage(options.mode != Mode::evaluation || !options.checkpoints.empty() || options.from_newest_saved,
               "--mode evaluation: give the file to evaluate as --checkpoint FILE");
  return options;
}

}  // namespace

ParsedTrainOptions parse_train_options(int argc, const char* const* argv) {
  const OptionTable table;
  const auto values = parse_words(rewrite_arguments(argc, argv), table);
  if (values.count("help") != 0) {
    std::ostringstream help;
    help << "Trains SSD300 and evaluates it as COCO does. One rank for each GPU, or for a share of the "
            "cores:\n"
            "  mpirun -np 8 ssd_train --fp16 --data /scratch/shards --save\n\n"
         << table.visible()
         << "\nExit codes: 0 done, 1 failed, 2 wrong usage, 75 stopped by USR1, USR2, TERM or INT after the "
            "step and the save:\ngo on with --checkpoint auto.\n";
    return {std::nullopt, help.str()};
  }
  if (values.count("version") != 0) return {std::nullopt, version_text("ssd_train")};
  auto options = options_of(values);
  options.configuration = configuration_of(values, table);
  if (values.count("print-config") != 0) return {std::nullopt, options.configuration};
  return {std::move(options), {}};
}

}  // namespace ssd
