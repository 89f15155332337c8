#include "infer/infer_options.hpp"

#include <boost/program_options.hpp>
#include <sstream>

#include "core/command_line.hpp"
#include "core/error.hpp"
#include "core/usage.hpp"
#include "train/version.hpp"

namespace ssd {
namespace {

namespace po = boost::program_options;

// Boost.ProgramOptions knows one long name only: --bs and --amp are those of ssd_train.
Words rewrite_arguments(int argc, const char* const* argv) {
  Words arguments;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--bs" || argument.starts_with("--bs=")) argument.replace(2, 2, "batch-size");
    if (argument == "--amp") argument = "--fp16";
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

po::typed_value<float>* number(float value) {
  return po::value<float>()->default_value(value, fmt::format("{}", value))->value_name("X");
}

po::typed_value<int>* count(int value) {
  return po::value<int>()->default_value(value)->value_name("N");
}

po::typed_value<std::string>* text(const char* value, const char* name) {
  return po::value<std::string>()->default_value(value, *value == '\0' ? "none" : value)->value_name(name);
}

struct OptionTable {
  po::options_description model{"Model and machine", kHelpColumns};
  po::options_description detections{"What is kept (defaults: the reference's inference script)",
                                     kHelpColumns};
  po::options_description output{"Output, at least one of --output and --draw", kHelpColumns};
  po::options_description other{"Other", kHelpColumns};
  po::options_description hidden;

  OptionTable() {
    const InferOptions defaults;
    model.add_options()                                                                    //
        ("checkpoint", text("", "FILE"), "a checkpoint of ssd_train or of the reference")  //
        ("backbone", po::value<std::string>()->value_name("NAME"),
         "resnet18, resnet34, resnet50, resnet101 or resnet152; default: that of the file")  //
        ("device", text("auto", "DEVICE"), "auto (CUDA where there is a GPU), cuda or cpu")  //
        ("fp16", "half precision: FP16 on a GPU, BF16 on a CPU that has it (or --amp)")      //
        ("batch-size", count(defaults.batch_size), "pictures at a time (or --bs)");
    detections.add_options()                                                                      //
        ("score-threshold", number(defaults.score_threshold), "only scores above; 0.05 or more")  //
        ("max-detections", count(defaults.max_detections), "of a picture, the best")              //
        ("nms-iou", number(defaults.nms_iou),
         "of two boxes of a class with this IoU or more the better stays");
    output.add_options()  //
        ("output", text("", "FILE"),
         "detections as a COCO results JSON, boxes in pixels of the upright pictures")                  //
        ("draw", text("", "DIR"), "each picture with its detections; DIR is made where it is missing")  //
        ("draw-format", text("jpeg", "FORMAT"), "jpeg or png")                                          //
        ("truth", text("", "FILE"),
         "a COCO annotation JSON: image ids and category ids are taken from it, by file name and class name, "
         "its boxes "
         "are drawn beside the detections, and of folders only pictures that it names are taken; without it "
         "image ids "
         "are 1, 2, ... and category ids the labels of the network");
    other.add_options()                         //
        ("help,h", "print this text and stop")  //
        ("version", "print the versions of the program and its libraries and stop");
    hidden.add_options()("pictures", po::value<Words>(), "");
  }

  po::options_description visible() const {
    po::options_description all(kHelpColumns);
    all.add(model).add(detections).add(output).add(other);
    return all;
  }

  po::variables_map parse(const Words& arguments) const {
    po::options_description all;
    all.add(visible()).add(hidden);
    return parse_command_line("ssd_infer", arguments, all, "pictures");
  }

  std::string help() const {
    std::ostringstream help;
    help << "Finds objects in JPEG pictures with a trained SSD300.\n"
            "  ssd_infer --checkpoint models/epoch_64.pt --draw drawn --output found.json PICTURE|FOLDER...\n"
            "Of a folder all .jpg and .jpeg files are taken, not those of folders within it.\n\n"
         << visible()
         << "\nExit codes: 0 done, 1 failed, or some pictures could not be used, 2 wrong usage.\n";
    return help.str();
  }
};

InferOptions options_of(const po::variables_map& values) {
  InferOptions options;
  const auto word = [&](const char* name) { return values[name].as<std::string>(); };
  if (values.count("pictures") != 0) {
    for (const auto& input : values["pictures"].as<Words>()) options.inputs.emplace_back(input);
  }
  options.checkpoint = word("checkpoint");
  if (values.count("backbone") != 0) options.backbone = backbone_from_name(word("backbone"));
  options.device = device_choice_from_name(word("device"));
  options.use_half = values.count("fp16") != 0;
  options.batch_size = values["batch-size"].as<int>();
  options.score_threshold = values["score-threshold"].as<float>();
  options.max_detections = values["max-detections"].as<int>();
  options.nms_iou = values["nms-iou"].as<float>();
  options.output = word("output");
  options.draw_folder = word("draw");
  options.draw_format = word("draw-format") == "png" ? ImageFormat::png : ImageFormat::jpeg;
  options.truth = word("truth");
  expect_usage(!options.checkpoint.empty(), "no --checkpoint FILE; see ssd_infer --help");
  expect_usage(!options.inputs.empty(), "no pictures; name files or folders; see ssd_infer --help");
  expect_usage(!options.output.empty() || !options.draw_folder.empty(),
               "nothing to do: give --output FILE, --draw DIR or both");
  expect_usage(options.batch_size >= 1,
               fmt::format("--batch-size {}: must be 1 or more", options.batch_size));
  // Written so that NaN fails too.
  expect_usage(options.score_threshold >= kScoreThreshold && options.score_threshold < 1,
               fmt::format("--score-threshold {}: must be from {} to less than 1", options.score_threshold,
                           kScoreThreshold));
  expect_usage(options.max_detections >= 1,
               fmt::format("--max-detections {}: must be 1 or more", options.max_detections));
  expect_usage(options.nms_iou > 0 && options.nms_iou <= 1,
               fmt::format("--nms-iou {}: must be above 0 and at most 1", options.nms_iou));
  expect_usage(options.draw_format == ImageFormat::png || word("draw-format") == "jpeg",
               fmt::format("--draw-format '{}': not one of jpeg, png", word("draw-format")));
  return options;
}

}  // namespace

ParsedInferOptions parse_infer_options(int argc, const char* const* argv) {
  const OptionTable table;
  const auto values = table.parse(rewrite_arguments(argc, argv));
  if (values.count("help") != 0) return {std::nullopt, table.help()};
  if (values.count("version") != 0) return {std::nullopt, version_text("ssd_infer")};
  return {options_of(values), {}};
}

}  // namespace ssd
