// The options of ssd_infer: one table makes the parser and --help.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "boxes/constants.hpp"
#include "report/image_file.hpp"
#include "train/train_options.hpp"

namespace ssd {

struct InferOptions {
  std::vector<std::filesystem::path> inputs;  // pictures, and folders of them
  std::filesystem::path checkpoint;
  std::optional<Backbone> backbone;  // nothing: of the checkpoint
  DeviceChoice device = DeviceChoice::automatic;
  bool use_half = false;
  int batch_size = 8;

  // Defaults of the reference's inference script.
  float score_threshold = 0.3F;  // kept are scores above it
  int max_detections = 20;       // of a picture
  float nms_iou = kNmsIouThreshold;

  std::filesystem::path output;       // COCO results JSON; empty: none
  std::filesystem::path draw_folder;  // empty: nothing is drawn
  ImageFormat draw_format = ImageFormat::jpeg;
  std::filesystem::path truth;  // a COCO annotation JSON; empty: none
};

// Nothing where the text asked for (--help, --version) is all there is to do: then it is in `text`.
struct ParsedInferOptions {
  std::optional<InferOptions> options;
  std::string text;
};

// Throws UsageError, one line that names the option and its value. Pure.
ParsedInferOptions parse_infer_options(int argc, const char* const* argv);

}  // namespace ssd
