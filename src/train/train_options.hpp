// The options of ssd_train: one table makes the parser, --help and --print-config. Names are those of the
// reference's main.py where the thing exists there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/placement.hpp"
#include "data/augmentation.hpp"
#include "data/loader.hpp"
#include "model/backbone.hpp"
#include "train/bucket_plan.hpp"

namespace ssd {

enum class Mode { training, evaluation, benchmark_training, benchmark_inference };
// Whether it goes over the training set.
inline bool trains(Mode mode) {
  return mode == Mode::training || mode == Mode::benchmark_training;
}
enum class GradientType { automatic, float16, bfloat16, float32 };
enum class DataLayout { automatic, channels_first, channels_last };

struct TrainOptions {
  std::filesystem::path data;  // of ssd_preprocess
  Mode mode = Mode::training;
  DeviceChoice device = DeviceChoice::automatic;
  DataLayout layout = DataLayout::automatic;
  bool use_half = false;
  bool allow_tf32 = true;
  bool use_step_graph = false;                           // --cuda-graph
  GradientType gradient_type = GradientType::automatic;  // what gradients travel as between ranks

  std::filesystem::path stage_dir;  // on each node's own disk; empty: shards are read where they are

  std::optional<Backbone> backbone;                // nothing: of the checkpoint, else ResNet-50
  std::filesystem::path backbone_path;             // a torchvision ResNet's state_dict; empty: random weights
  std::vector<std::filesystem::path> checkpoints;  // empty: from the start
  bool from_newest_saved = false;                  // --checkpoint auto
  std::optional<std::filesystem::path> save_folder;
  std::int64_t save_interval = 0;  // iterations between saves besides those of epochs; 0: none
  double save_minutes = 0;         // the same in minutes
  int kept_checkpoints = 0;        // newest files that stay; 0: every epoch's

  int epochs = 65;
  int batch_size = 32;             // per rank
  int evaluation_batch_size = 32;  // per rank
  std::optional<std::uint64_t> seed;
  double learning_rate = 2.6e-3;  // for a global batch of 32
  double momentum = 0.9;
  double weight_decay = 5e-4;
  std::int64_t warmup_iterations = 0;
  std::vector<int> multistep = {43, 54};                           // zero-based epochs
  std::vector<int> evaluation = {21, 31, 37, 42, 48, 53, 59, 64};  // zero-based epochs
  EvaluationRecords evaluation_records = EvaluationRecords::all;
  bool waits_for_scores = false;  // of an evaluation, before training goes on
  CrowdBoxes crowd = CrowdBoxes::train_on;
  AugmentationOptions augmentation;
  BucketOptions buckets;

  double watchdog_seconds = 600;  // that a rank may be stuck; 0: for ever
  bool skips_nonfinite = false;   // steps whose loss or gradients are not finite are left out
  int num_workers = 8;            // loader threads per rank at most
  double decoded_cache_gib = 0;   // of decoded training pictures, per rank; 0: none
  int log_interval = 20;          // iterations
  std::int64_t weights_check_interval =
      0;  // iterations between checks that ranks agree; 0: at start and when saving
  std::filesystem::path json_summary;
  std::filesystem::path plot;     // SVG of loss and AP over epochs
  std::filesystem::path results;  // detections of an evaluation as COCO results JSON
  int benchmark_iterations = 20;
  int benchmark_warmup = 20;

  std::string configuration;  // every option with its value, a line each, as --print-config prints them
};

// Nothing where the text asked for (--help, --version, --print-config) is all there is to do: then it is in
// `text`.
struct ParsedTrainOptions {
  std::optional<TrainOptions> options;
  std::string text;
};

// Throws UsageError, one line that names the option and its value. Pure, but for $SSD_DATA.
ParsedTrainOptions parse_train_options(int argc, const char* const* argv);

}  // namespace ssd
