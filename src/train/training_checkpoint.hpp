// A training run as a checkpoint file, and back. checkpoint/FORMAT.md says what is in the file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "coco/annotations.hpp"
#include "train/learning_rate.hpp"
#include "train/loss_scaler.hpp"
#include "train/parameter_arena.hpp"
#include "train/sgd.hpp"

namespace ssd {

// The next iteration to run.
struct TrainingPosition {
  std::int64_t epoch = 0;
  std::int64_t iteration_in_epoch = 0;
  std::int64_t iteration = 0;  // over the whole run
};

// What a checkpoint holds besides weights and momentum.
struct TrainingFacts {
  TrainingPosition position;
  std::optional<LossScalerState> scaler;  // where the run scales its loss
  std::uint64_t seed = 0;
  LearningRateOptions schedule;
  SgdOptions sgd;
  std::vector<std::string> class_names;  // without the background
  std::string configuration;
  std::string data_digest;  // of the set of shards, hexadecimal
  int compute_threads = 1;
  std::string cpu;
};

// Model, statistics and momentum at one moment. On a CPU master weights and momentum are not copied: they
// have to stay as they are while the snapshot is used (ParameterArena, Note [Spare blocks]). Elsewhere
// everything is copied.
struct StateSnapshot {
  struct Named {
    std::string name;
    torch::Tensor tensor;  // on the host, in the parameter's shape; not always row-major
  };
  std::vector<Named> model;  // master weights and buffers in the order of the state_dict
  std::array<std::vector<torch::Tensor>, 2> momentum;  // of torch's two parameter groups, in their order
};
StateSnapshot take_snapshot(const Ssd300& model, const ParameterArena& arena);

// The file's contents; copies the weights. Local, from any thread.
Value make_checkpoint(const StateSnapshot& state, const TrainingFacts& facts);

// What a file says of the run it came from; what is optional is missing in the reference's own files.
struct ResumedFacts {
  TrainingPosition position;
  bool has_optimizer = false;
  std::optional<LossScalerState> scaler;
  std::optional<std::uint64_t> seed;
  std::optional<int> world_size, batch_size, compute_threads;
  std::optional<std::string> cpu, configuration, data_digest;
};

// What is taken from a file. weights: besides them only the position; an optimizer of any kind may be in the
// file. training: all that a run goes on from.
enum class Restore { weights, training };

// Weights, statistics and (where asked for and in the file) momentum into model and arena. Local. Throws
// Error that names the file and what does not fit: another number of classes, another backbone, missing
// tensors, numbers that are not finite, for `training` also an optimizer that is not this one.
ResumedFacts load_checkpoint(const CheckpointItem& root, Ssd300& model, ParameterArena& arena,
                             Restore restore);

// The backbone of the network to make for a file: the one that its tensors are of; where they do not tell,
// the one asked for, or ResNet-50. Throws UsageError where one is asked for that is not the file's.
Backbone backbone_for(const CheckpointItem& root, std::optional<Backbone> asked);

// The file to go on from: of several the one of the newest epoch, by its number and else by what is stored.
std::filesystem::path newest_checkpoint(std::span<const std::filesystem::path> files);

// A torchvision ResNet's state_dict into the feature extractor; layer4 and fc are not used. It may be part of
// a larger network whose names have a prefix before the ResNet's. Throws Error: another architecture, missing
// tensors, numbers that are not finite.
void load_backbone(const CheckpointItem& root, Ssd300& model);

}  // namespace ssd
