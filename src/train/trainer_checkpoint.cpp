// The part of Trainer that loads what a run goes on from, and saves it.
#include "train/trainer.hpp"

#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "checkpoint/class_count.hpp"
#include "checkpoint/file_names.hpp"
#include "comm/agreement.hpp"
#include "core/atomic_file.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/phase.hpp"
#include "core/stop_signals.hpp"
#include "core/stopwatch.hpp"
#include "model/model_tensors.hpp"
#include "train/course_changes.hpp"
#include "train/weights_check.hpp"

namespace ssd {
namespace {

void broadcast_tensor(const MpiComm& world, torch::Tensor tensor) {
  auto on_host = tensor.is_cpu() ? tensor : tensor.cpu();
  SSD_EXPECT(on_host.is_contiguous());
  world.broadcast_in_place({static_cast<std::byte*>(on_host.data_ptr()), on_host.nbytes()});
  if (!tensor.is_cpu()) tensor.copy_(on_host);
}

// Not by ATen: on the saver's thread it would start a second team of threads beside training's.
bool is_finite(const torch::Tensor& tensor) {
  const auto all_finite = [&](const auto* values) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) count += std::isfinite(values[i]) ? 1 : 0;
    return count == tensor.numel();
  };
  if (tensor.scalar_type() == torch::kFloat) return all_finite(tensor.data_ptr<float>());
  if (tensor.scalar_type() == torch::kDouble) return all_finite(tensor.data_ptr<double>());
  return true;  // a counter
}

// The loss is measured before a step's update: that the update itself was good is seen here.
void expect_finite(const StateSnapshot& state) {
  for (const auto& [name, tensor] : state.model) {
    SSD_VALIDATE(is_finite(tensor),
                 "'{}' is not finite; a smaller --learning-rate or a longer --warmup helps; checkpoints "
                 "written before are good",
                 name);
  }
}

// A run goes on with the labels that the file was trained with.
void expect_same_classes(const CheckpointItem& root, const std::vector<Category>& categories) {
  const auto names = class_names_of(root);
  if (!names) return;
  SSD_EXPECT(names->size() == categories.size());
  for (std::size_t i = 0; i < names->size(); ++i) {
    SSD_VALIDATE(
        (*names)[i] == categories[i].name,
        "checkpoint '{}': its class {} is '{}', that of the train shards is '{}'; take the data set it "
        "was trained on, or start from its weights alone: ssd_checkpoint {} --output weights.pt "
        "--weights-only, then --checkpoint weights.pt",
        root.source(), i + 1, (*names)[i], categories[i].name, root.source());
  }
}

}  // namespace

// The checkpoint to go on from, nothing to start anew.
std::optional<std::filesystem::path> Trainer::start_file() const {
  if (!options_.from_newest_saved) {
    if (options_.checkpoints.empty()) return std::nullopt;
    return newest_checkpoint(options_.checkpoints);
  }
  const auto file = find_whole_checkpoint(*options_.save_folder);
  SSD_VALIDATE(file || options_.mode != Mode::evaluation, "--checkpoint auto: no checkpoint in '{}'",
               options_.save_folder->string());
  if (!file)
    log_info("--checkpoint auto: no checkpoint in '{}' yet, from the start", options_.save_folder->string());
  return file;
}

void Trainer::read_start() {
  const PhaseMark mark("reading the checkpoint");
  if (world_.is_root() && options_.save_folder) {
    std::error_code error;
    std::filesystem::create_directories(*options_.save_folder, error);
    SSD_VALIDATE(!error, "--save '{}': cannot make this folder: {}", options_.save_folder->string(),
                 error.message());
    if (options_.mode == Mode::training) {
      saver_ =
          std::make_unique<CheckpointSaver>(SaverOptions{*options_.save_folder, options_.kept_checkpoints});
    }
  }
  // An evaluation comes late: what it writes to is looked at now.
  if (world_.is_root()) {
    for (const auto& path : {options_.results, options_.plot}) {
      if (!path.empty()) validate_output_path(path);
    }
  }
  if (world_.is_root() && !options_.json_summary.empty())
    json_ = std::make_unique<JsonLines>(options_.json_summary);
  if (world_.is_root() && !options_.plot.empty() && options_.mode == Mode::training)
    curves_ = std::make_unique<RunCurves>(options_.plot);
  if (!world_.is_root()) return;
  if (const auto file = start_file()) start_ = read_checkpoint_file(*file);
}

void Trainer::load_start() {
  const PhaseMark mark("loading the checkpoint");
  if (saver_ && !plan_.device.is_cuda()) arena_->reserve_spare_blocks();
  if (!start_) return;
  const auto root = *std::exchange(start_, std::nullopt);
  const bool resumes = options_.mode == Mode::training;
  const auto resumed =
      load_checkpoint(root, *model_, *arena_, resumes ? Restore::training : Restore::weights);
  position_ = resumed.position;
  is_resumed_ = true;
  log_info("checkpoint '{}': epoch {}, iteration {}{}", root.source(), position_.epoch, position_.iteration,
           resumed.has_optimizer ? "" : ", weights alone");
  if (!resumes) return;
  expect_same_classes(root, train_set_->categories());
  if (resumed.scaler) scaler_->set_state(*resumed.scaler);
  if (resumed.seed && !options_.seed) seed_ = *resumed.seed;
  if (resumed.seed && options_.seed && *resumed.seed != *options_.seed) {
    log_warning("--seed {}: the checkpoint was made with {}; order and augmentation go on with --seed",
                *options_.seed, *resumed.seed);
  }
  const auto warn_of = [](const char* what, auto then, auto now) {
    if (then && *then != now) {
      log_warning(
          "the checkpoint was made with {} {}, this run has {}: it goes on, but not with the same bits", what,
          *then, now);
    }
  };
  adapt_position(resumed);
  warn_of("ranks:", resumed.world_size, world_.world_size());
  warn_of("batch size", resumed.batch_size, options_.batch_size);
  warn_of("compute threads:", resumed.compute_threads, plan_.compute_threads);
  warn_of("CPU features", resumed.cpu, cpu_.name);
  warn_of("shards of digest", resumed.data_digest, train_set_->digest().hex());
  if (!resumed.configuration) return;
  const auto changes = course_changes(*resumed.configuration, options_.configuration);
  if (!changes.empty()) {
    log_warning("the checkpoint was made with other options, this run goes on with its own: {}",
                fmt::join(changes, ", "));
  }
}

// The samples of an epoch are the same for any global batch: where that is another one now, the position in
// the epoch is that of the sample.
void Trainer::adapt_position(const ResumedFacts& resumed) {
  if (position_.iteration_in_epoch == 0 || !resumed.world_size || !resumed.batch_size) return;
  const auto then = std::int64_t{*resumed.world_size} * *resumed.batch_size;
  const auto now = std::int64_t{world_.world_size()} * options_.batch_size;
  const auto samples = position_.iteration_in_epoch * then;
  position_.iteration_in_epoch = samples / now;
  if (samples % now != 0) {
    log_warning(
        "the checkpoint lies {} images into its epoch, which is no multiple of the global batch of {}: {} "
        "images are "
        "seen twice",
        samples, now, samples % now);
  }
}

void Trainer::broadcast_state() {
  torch::NoGradGuard no_grad;
  for (auto& block : arena_->blocks()) {
    broadcast_tensor(world_, block.master);
    broadcast_tensor(world_, block.momentum);
  }
  arena_->copy_masters_to_weights();
  broadcast_buffers();
  auto scaler = scaler_->state();
  world_.broadcast_in_place(std::as_writable_bytes(std::span(&scaler, 1)));
  scaler_->set_state(scaler);
  world_.broadcast_in_place(std::as_writable_bytes(std::span(&position_, 1)));
  world_.broadcast_in_place(std::as_writable_bytes(std::span(&seed_, 1)));
}

void Trainer::broadcast_buffers() {
  torch::NoGradGuard no_grad;
  for (auto& tensor : model_tensors(*model_)) {
    if (!tensor.is_parameter) broadcast_tensor(world_, tensor.tensor);
  }
}

// Collective: a run that was asked to end. What it trained is saved by then, where it saves at all.
int Trainer::stop(std::int64_t iteration) {
  report_scores(true);
  run_in_agreement(world_, [&] {
    const PhaseMark mark("writing the last checkpoint");
    SSD_VALIDATE(!saver_ || saver_->wait(),
                 "stopped after iteration {}, but the checkpoint is not written; see the warnings above",
                 iteration);
  });
  log_info(
      "stopped after iteration {}{}: {}", iteration,
      stop_signal() != 0 ? fmt::format(" by signal {}", signal_name(stop_signal())) : "",
      options_.save_folder ? "go on with --checkpoint auto" : "nothing is saved, since there is no --save");
  return kStoppedExitCode;
}

// On rank 0, in training.
std::string Trainer::way_back() const {
  if (!saver_) return "nothing was saved, since there is no --save";
  saver_->wait();
  const auto file = saver_->last_written();
  return file.empty() ? "this run has written no checkpoint yet"
                      : fmt::format("the last good checkpoint is '{}'", file.string());
}

// Collective. Training goes on while rank 0 writes.
void Trainer::save(const TrainingPosition& position, const std::string& name) {
  const Stopwatch pause;
  expect_same_weights(*arena_, world_, fmt::format("after iteration {}", position.iteration));
  if (!world_.is_root()) return;
  TrainingFacts facts;
  facts.position = position;
  if (scaler_->is_dynamic()) facts.scaler = scaler_->state();
  facts.seed = seed_;
  facts.schedule = schedule();
  facts.sgd = {options_.momentum, options_.weight_decay};
  for (const auto& category : train_set_->categories()) facts.class_names.push_back(category.name);
  facts.configuration = options_.configuration;
  facts.data_digest = train_set_->digest().hex();
  facts.compute_threads = plan_.compute_threads;
  facts.cpu = cpu_.name;
  {
    const PhaseMark mark("waiting for the checkpoint before to be written");
    saver_->wait();  // for the blocks that it reads
  }
  auto state = take_snapshot(*model_, *arena_);
  if (!plan_.device.is_cuda()) arena_->preserve_state();
  saver_->start(name, [state = std::move(state), facts = std::move(facts)] {
    expect_finite(state);
    return make_checkpoint(state, facts);
  });
  since_save_ = {};
  if (has_json())
    json_->log({position.epoch, position.iteration}, {{"model path", (*options_.save_folder / name).string()},
                                                      {"save_pause_ms", 1000 * pause.seconds()}});
}

}  // namespace ssd
