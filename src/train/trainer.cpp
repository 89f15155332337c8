#include "train/trainer.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "boxes/constants.hpp"
#include "checkpoint/file_names.hpp"
#include "comm/agreement.hpp"
#include "comm/shared_flags.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/stop_signals.hpp"
#include "core/stopwatch.hpp"
#include "model/detection_decode.hpp"
#include "model/model_tensors.hpp"
#include "report/progress.hpp"
#include "train/benchmark_report.hpp"
#include "train/placement_table.hpp"
#include "train/step_log.hpp"
#include "train/version.hpp"
#include "train/weights_check.hpp"

namespace ssd {
namespace {

std::uint64_t choose_seed(const TrainOptions& options, const MpiComm& world) {
  std::uint64_t seed = options.seed.value_or(0);
  if (!options.seed) {
    std::random_device random;
    seed = random();
  }
  world.broadcast_in_place(std::as_writable_bytes(std::span(&seed, 1)));
  return seed;
}

// Each rank's text on the root, nothing elsewhere. Collective.
std::vector<std::string> gather_texts(const MpiComm& world, const std::string& own) {
  std::vector<std::string> texts;
  for (const auto& bytes : world.gather(std::as_bytes(std::span(own)))) {
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return texts;
}

// What a rank asks of all (comm/shared_flags.hpp).
constexpr std::uint32_t kStop = 1, kSave = 2;

void broadcast_tensor(const MpiComm& world, torch::Tensor tensor) {
  auto on_host = tensor.is_cpu() ? tensor : tensor.cpu();
  SSD_EXPECT(on_host.is_contiguous());
  world.broadcast_in_place({static_cast<std::byte*>(on_host.data_ptr()), on_host.nbytes()});
  if (!tensor.is_cpu()) tensor.copy_(on_host);
}

// The loss is measured before a step's update: that the update itself was good is seen here.
void expect_finite(const StateSnapshot& state) {
  for (const auto& [name, tensor] : state.model) {
    SSD_VALIDATE(tensor.isfinite().all().item<bool>(),
                 "'{}' is not finite; a smaller --learning-rate or a longer --warmup helps; checkpoints "
                 "written before are good",
                 name);
  }
}

void expect_finite(const torch::Tensor& loss, int iteration) {
  const auto value = loss.item<double>();
  SSD_VALIDATE(std::isfinite(value),
               "iteration {}: the loss is {}; a smaller --learning-rate or a --warmup helps", iteration,
               value);
}

}  // namespace

Trainer::Trainer(const TrainOptions& options, const MpiComm& world)
    : options_(options), world_(world), placement_(find_placement(world)), cpu_(find_cpu_capabilities()) {
  torch::manual_seed(0);
  seed_ = choose_seed(options_, world_);
  run_in_agreement(world_, [&] {
    SSD_VALIDATE(!options_.use_step_graph || world_.world_size() == 1,
                 "--cuda-graph: for one rank, these are {}", world_.world_size());
    plan_ = plan_compute(options_, placement_, cpu_, visible_device_count());
    apply_compute_plan(plan_, options_);
    open_data();
  });
  agree_on_one_gpu_each(world_, placement_, plan_.device.is_cuda() ? plan_.device.index() : -1);
  expect_same_start();
  run_in_agreement(world_, [&] { make_model(); });
  run_in_agreement(world_, [&] { load_start(); });
  broadcast_state();
  expect_same_weights(*arena_, world_, "at start");
  communicator_ = make_gradient_communicator(world_, plan_);
  ReducerOptions reducer_options;
  reducer_options.wire_type = plan_.wire_type;
  reducer_options.buckets = options_.buckets;
  reducer_ = std::make_unique<GradientReducer>(*arena_, communicator_.get(), reducer_options);
  step_ = std::make_unique<TrainStep>(*model_, *arena_, *reducer_, *scaler_,
                                      SgdOptions{options_.momentum, options_.weight_decay});
#if SSD_WITH_CUDA
  if (options_.use_step_graph) graph_ = std::make_unique<StepGraph>(*step_);
#endif
  log_start();
}

void Trainer::open_data() {
  const bool needs_validation =
      options_.mode == Mode::evaluation || options_.mode == Mode::benchmark_inference ||
      (options_.mode == Mode::training && !options_.evaluation.empty() &&
       *std::min_element(options_.evaluation.begin(), options_.evaluation.end()) < options_.epochs);
  if (trains(options_.mode)) train_set_.emplace(ShardSet::open(options_.data, Split::train));
  if (needs_validation) {
    validation_set_.emplace(ShardSet::open(options_.data, Split::val));
    evaluator_.emplace(*validation_set_, options_.evaluation_batch_size, options_.evaluation_records);
  }
  if (train_set_ && validation_set_) {
    const auto& a = train_set_->categories();
    const auto& b = validation_set_->categories();
    SSD_VALIDATE(std::equal(a.begin(), a.end(), b.begin(), b.end(),
                            [](const Category& x, const Category& y) { return x.id == y.id; }),
                 "data '{}': train has {} classes, val {}, or in another order; pack both splits from one "
                 "set of annotations",
                 options_.data.string(), a.size(), b.size());
  }
}

// Nodes may differ in hardware and, where shards lie on local disks, in their data. Ranks that computed in
// other types or saw other records would send each other messages of other lengths.
void Trainer::expect_same_start() const {
  std::string own =
      fmt::format("computes on {} in {}, gradients in {}", plan_.device.is_cuda() ? "CUDA" : "CPU",
                  c10::toString(plan_.arena.compute_type), wire_type_name(plan_.wire_type));
  for (const auto* set : {&train_set_, &validation_set_}) {
    if (*set)
      own += fmt::format("; '{}' {} has digest {}", (*set)->folder().string(), split_name((*set)->split()),
                         (*set)->digest().hex());
  }
  const auto all = gather_texts(world_, own);
  run_in_agreement(world_, [&] {
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      const auto& other = all[rank];
      SSD_VALIDATE(
          other == own,
          "rank {} and rank 0 do not fit together: rank {} {}; rank 0 {}; use the same kind of nodes "
          "(or --device cpu, without --fp16) and the same shards on all of them",
          rank, rank, other, own);
    }
  });
}

void Trainer::make_model() {
  const auto& set = train_set_ ? *train_set_ : *validation_set_;
  model_ = std::make_unique<Ssd300>(options_.backbone, static_cast<int>(set.categories().size()) + 1);
  initialise_weights(*model_, seed_);
  if (world_.is_root() && !options_.backbone_path.empty() && options_.checkpoints.empty()) {
    load_backbone(read_checkpoint_file(options_.backbone_path), *model_);
  }
  model_->to(plan_.device);
  model_->train(trains(options_.mode));
  arena_ = std::make_unique<ParameterArena>(*model_, plan_.arena);
  scaler_ = std::make_unique<LossScaler>(plan_.loss_scaling, plan_.device);
  default_boxes_ = default_boxes_tensor().to(plan_.device);
}

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

void Trainer::load_start() {
  if (world_.is_root() && options_.save_folder) {
    std::error_code error;
    std::filesystem::create_directories(*options_.save_folder, error);
    SSD_VALIDATE(!error, "--save '{}': cannot make this folder: {}", options_.save_folder->string(),
                 error.message());
    if (options_.mode == Mode::training) {
      saver_ =
          std::make_unique<CheckpointSaver>(SaverOptions{*options_.save_folder, options_.kept_checkpoints});
      if (!plan_.device.is_cuda()) arena_->reserve_spare_blocks();
    }
  }
  // An evaluation comes late: what it writes to is looked at now.
  const auto results_folder = options_.results.parent_path();
  std::error_code ignored;
  SSD_VALIDATE(
      !world_.is_root() || results_folder.empty() || std::filesystem::is_directory(results_folder, ignored),
      "--results '{}': no folder '{}'; make it first", options_.results.string(), results_folder.string());
  if (world_.is_root() && !options_.json_summary.empty())
    json_ = std::make_unique<JsonLines>(options_.json_summary);
  if (world_.is_root() && !options_.plot.empty() && options_.mode == Mode::training)
    curves_ = std::make_unique<RunCurves>(options_.plot);
  if (!world_.is_root()) return;
  const auto file = start_file();
  if (!file) return;
  const auto resumed = load_checkpoint(read_checkpoint_file(*file), *model_, *arena_);
  position_ = resumed.position;
  is_resumed_ = true;
  log_info("checkpoint '{}': epoch {}, iteration {}{}", file->string(), position_.epoch, position_.iteration,
           resumed.has_optimizer ? "" : ", weights alone");
  if (!trains(options_.mode)) return;
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

LearningRateOptions Trainer::schedule() const {
  return {options_.learning_rate, world_.world_size(), options_.batch_size, options_.warmup_iterations,
          options_.multistep};
}

void Trainer::log_start() const {
  log_info("ssd_train {}: SSD300 with {}, {} classes and the background, seed {}", SSD_VERSION,
           backbone_name(options_.backbone), model_->class_count() - 1, seed_);
  log_info("{} ranks, {} on this node, {} cores each: {}", world_.world_size(), placement_.local_size,
           placement_.cores, describe(plan_, options_, cpu_));
  const auto ranks = gather_placement(
      world_, {world_.rank(), placement_, plan_.device.str(), plan_.compute_threads, plan_.loader_threads});
  log_placement(ranks);
  if (trains(options_.mode)) {
    log_info(
        "learning rate {:.6g} = {:.6g} * {} ranks * {} / 32, warmup {} iterations, divided by 10 before "
        "epochs {}",
        full_learning_rate(schedule()), options_.learning_rate, world_.world_size(), options_.batch_size,
        options_.warmup_iterations, fmt::join(options_.multistep, " "));
    if (options_.backbone_path.empty() && !is_resumed_)
      log_info("no --backbone-path: the backbone starts from random weights");
  }
  if (has_json()) {
    JsonLines::Json parameters{{"world_size", world_.world_size()}, {"placement", placement_json(ranks)}};
    std::size_t at = 0;
    while (at < options_.configuration.size()) {
      const auto end = options_.configuration.find('\n', at);
      const auto line = options_.configuration.substr(at, end - at);
      const auto separator = line.find(" = ");
      parameters[line.substr(0, separator)] = line.substr(separator + 3);
      at = end + 1;
    }
    parameters["seed"] = seed_;  // the one used, also where it was drawn
    json_->parameters(parameters);
    json_->metadata("img/sec", {{"unit", "images/s"}});
    for (const char* metric : {"data_ms", "exposed_comm_ms"}) json_->metadata(metric, {{"unit", "ms"}});
    for (const char* metric : {"time", "total time", "evaluation time"})
      json_->metadata(metric, {{"unit", "s"}});
    for (const char* metric : {"loss", "mAP"}) json_->metadata(metric, {{"unit", nullptr}});
  }
}

std::unique_ptr<TrainLoader> Trainer::make_train_loader() const {
  TrainLoaderOptions loader;
  loader.share = {options_.batch_size, world_.rank(), world_.world_size()};
  loader.seed = seed_;
  loader.crowd = options_.crowd;
  loader.augmentation = options_.augmentation;
  loader.start_epoch = static_cast<std::uint32_t>(position_.epoch);
  loader.start_iteration = static_cast<std::uint64_t>(position_.iteration_in_epoch);
  loader.pipeline.threads = plan_.loader_threads;
  loader.pipeline.allocate = pixel_allocator(plan_);
  return std::make_unique<TrainLoader>(*train_set_, loader);
}

torch::Tensor Trainer::run_step(const DeviceBatch& batch, double rate) {
#if SSD_WITH_CUDA
  if (graph_) return graph_->run(batch.images, batch.targets, rate);
#endif
  return step_->run(batch.images, batch.targets, rate);
}

int Trainer::train() {
  std::unique_ptr<TrainLoader> loader;
  run_in_agreement(world_, [&] { loader = make_train_loader(); });
  const auto iterations = static_cast<std::int64_t>(loader->iterations_per_epoch());
  log_info("{} images, {} of them with boxes to train on; {} iterations an epoch, {} epochs",
           train_set_->records().size(), loader->usable_record_count(), iterations, options_.epochs);
  const auto first_epoch = position_.epoch;
  if (first_epoch >= options_.epochs && world_.is_root()) {
    log_warning("the checkpoint has all {} epochs: nothing is left to train; more with --epochs N",
                options_.epochs);
  }
  const auto is_ahead = [&](int epoch) { return epoch >= position_.epoch && epoch < options_.epochs; };
  if (first_epoch < options_.epochs && !options_.evaluation.empty() &&
      std::none_of(options_.evaluation.begin(), options_.evaluation.end(), is_ahead) && world_.is_root()) {
    log_warning(
        "--evaluation {}: none of these epochs comes in a run of epochs {} to {}; '--evaluation last' takes "
        "the last",
        fmt::join(options_.evaluation, " "), position_.epoch, options_.epochs - 1);
  }
  const Stopwatch time;
  BatchFeed feed(*loader, plan_);
  SharedFlags flags(world_);
  bool is_stopping = false;
  StepLog log(
      world_, *scaler_,
      {std::int64_t{options_.batch_size} * world_.world_size(), options_.epochs * iterations, json_.get()});
  while (position_.epoch < options_.epochs) {
    const auto epoch = position_.epoch;
    const Stopwatch epoch_time;
    for (; position_.iteration_in_epoch < iterations; ++position_.iteration_in_epoch, ++position_.iteration) {
      const double rate = learning_rate(schedule(), epoch, position_.iteration);
      const auto batch = feed.next();
      SSD_EXPECT(batch.epoch == static_cast<std::uint32_t>(epoch));
      const auto loss = run_step(batch, rate);
      feed.prefetch();
      log.add(loss, {batch.waited_ms, reducer_->exposed_ms()});
      const auto done = position_.iteration + 1;
      if (options_.weights_check_interval > 0 && done % options_.weights_check_interval == 0) {
        expect_same_weights(*arena_, world_, fmt::format("after iteration {}", done));
      }
      const bool is_last = position_.iteration_in_epoch + 1 == iterations;
      if (is_last || done % options_.log_interval == 0) {
        const double mean_loss = log.flush(epoch, position_.iteration, rate);
        const double part =
            static_cast<double>(position_.iteration_in_epoch + 1) / static_cast<double>(iterations);
        if (curves_) curves_->add_loss(static_cast<double>(epoch) + part, mean_loss);
        report_scores(false);
      }
      const auto wanted = flags.exchange(own_flags());
      is_stopping = (wanted & kStop) != 0;
      if (is_last) continue;  // the epoch's own save comes
      const bool saves = (wanted & (kStop | kSave)) != 0 ||
                         (options_.save_interval > 0 && done % options_.save_interval == 0);
      if (saves && options_.save_folder) {
        save({epoch, position_.iteration_in_epoch + 1, done}, iteration_checkpoint_name(done));
        log.restart_clock();
      }
      if (is_stopping) return stop(done);
    }
    position_ = {epoch + 1, 0, position_.iteration};
    if (has_json()) json_->log({epoch}, {{"time", epoch_time.seconds()}});
    finish_epoch(epoch);
    log.restart_clock();
    if (is_stopping && position_.epoch < options_.epochs) return stop(position_.iteration);
  }
  report_scores(true);
  run_in_agreement(world_, [&] {
    if (curves_) curves_->write();
    SSD_VALIDATE(!saver_ || saver_->wait(), "the last checkpoint is not written; see the warnings above");
  });
  log_info("done: {} epochs in {}", std::max(std::int64_t{0}, options_.epochs - first_epoch),
           format_duration(time.seconds()));
  if (has_json()) json_->log(JsonLines::Json::array(), {{"total time", time.seconds()}});
  return 0;
}

std::uint32_t Trainer::own_flags() const {
  std::uint32_t flags = stop_signal() != 0 ? kStop : 0;
  if (world_.is_root() && options_.save_minutes > 0 && since_save_.seconds() >= 60 * options_.save_minutes)
    flags |= kSave;
  return flags;
}

// Collective: a run that was asked to end. What it trained is saved by then, where it saves at all.
int Trainer::stop(std::int64_t iteration) {
  report_scores(true);
  run_in_agreement(world_, [&] {
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

void Trainer::finish_epoch(std::int64_t epoch) {
  // The statistics of rank 0 are the run's, as with PyTorch's DDP; each rank's own do not enter training.
  broadcast_buffers();
  if (options_.save_folder) save(position_, checkpoint_file_name(epoch));
  const auto& epochs = options_.evaluation;
  if (std::find(epochs.begin(), epochs.end(), static_cast<int>(epoch)) == epochs.end()) return;
  start_evaluation(epoch);
  if (options_.waits_for_scores) report_scores(true);
}

// Collective. Training goes on while rank 0 writes.
void Trainer::save(const TrainingPosition& position, const std::string& name) {
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
  facts.compute_threads = plan_.compute_threads;
  facts.cpu = cpu_.name;
  saver_->wait();  // for the blocks that the save before it reads
  auto state = take_snapshot(*model_, *arena_);
  if (!plan_.device.is_cuda()) arena_->preserve_state();
  saver_->start(name, [state = std::move(state), facts = std::move(facts)] {
    expect_finite(state);
    return make_checkpoint(state, facts);
  });
  since_save_ = {};
  if (has_json())
    json_->log({position.epoch, position.iteration},
               {{"model path", (*options_.save_folder / name).string()}});
}

// Collective. Training goes on when the ranks have run their images; rank 0 scores beside it.
void Trainer::start_evaluation(std::int64_t epoch) {
  report_scores(true);  // of the evaluation before
  auto gathered = evaluator_->detect(*model_, plan_, world_);
  if (!gathered) return;
  pending_scores_ = {epoch, std::async(std::launch::async, [this, work = std::move(*gathered)] {
                       return evaluator_->score(work);
                     })};
}

// Collective. Reports the evaluation that is being scored, if there is one and it is ready, or waits for it.
void Trainer::report_scores(bool waits) {
  run_in_agreement(world_, [&] {
    auto& [epoch, scores] = pending_scores_;
    if (!scores.valid()) return;
    if (!waits && scores.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    report_evaluation(epoch, scores.get());
  });
}

void Trainer::report_evaluation(std::int64_t epoch, const EvaluationReport& report) {
  std::string text = options_.mode == Mode::training ? fmt::format("Evaluation of epoch {}:\n", epoch) : "";
  text += format_report(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  log_info("evaluated{}: AP {:.5f}, AP50 {:.5f}, {} images in {:.1f} s, scored in {:.2f} s",
           epoch >= 0 ? fmt::format(" epoch {}", epoch) : "", report.summary[0], report.summary[1],
           report.image_count, report.detection_seconds, report.scoring_seconds);
  if (!options_.results.empty()) write_detections(options_.results, report.detections);
  if (curves_) {
    curves_->add_evaluation(static_cast<double>(epoch + 1), report.summary[0], report.summary[1]);
    curves_->write();
  }
  if (!has_json()) return;
  JsonLines::Json per_category = JsonLines::Json::object();
  for (const auto& category : report.categories) {
    per_category[category.name] = {
        {"AP", category.ap}, {"AP50", category.ap50}, {"boxes", category.box_count}};
  }
  json_->log(epoch >= 0 ? JsonLines::Json{epoch} : JsonLines::Json::array(),
             {{"mAP", report.summary[0]},
              {"stats", report.summary},
              {"categories", per_category},
              {"evaluation time", report.detection_seconds},
              {"scoring time", report.scoring_seconds}});
}

// Weights alone are of no known epoch: -1.
void Trainer::evaluate() {
  start_evaluation(position_.epoch - 1);
  report_scores(true);
}

void Trainer::benchmark_training() {
  std::unique_ptr<TrainLoader> loader;
  run_in_agreement(world_, [&] { loader = make_train_loader(); });
  const int iterations = options_.benchmark_warmup + options_.benchmark_iterations;
  Progress progress("benchmark", "iterations", static_cast<std::uint64_t>(iterations));
  BatchFeed feed(*loader, plan_);
  std::vector<double> seconds;
  RankWaits waits;
  torch::Tensor loss_before;
  for (int i = 0; i < iterations; ++i) {
    if (i == options_.benchmark_warmup) world_.barrier();
    const Stopwatch time;
    const auto batch = feed.next();
    const auto loss = run_step(batch, learning_rate(schedule(), 0, i));
    feed.prefetch();
    // A GPU is one step behind at most, and never waited for while it has nothing to do.
    if (loss_before.defined()) expect_finite(loss_before, i - 1);
    if (i + 1 == iterations) expect_finite(loss, i);
    loss_before = loss;
    progress.advance();
    if (i < options_.benchmark_warmup) continue;
    seconds.push_back(time.seconds());
    waits.data_ms += batch.waited_ms / options_.benchmark_iterations;
    waits.exposed_comm_ms += reducer_->exposed_ms() / options_.benchmark_iterations;
  }
  progress.finish();
  BenchmarkReport report{"training",
                         summarise_rates(seconds, double{1} * options_.batch_size * world_.world_size()),
                         world_.world_size(),
                         {},
                         time_phases(feed)};
  for (const auto& bytes : world_.gather(std::as_bytes(std::span(&waits, 1)))) {
    std::memcpy(&report.waits.emplace_back(), bytes.data(), sizeof(RankWaits));
  }
  report_benchmark(report);
}

// A few steps more, with the phases one after another.
PhaseClock::Milliseconds Trainer::time_phases(BatchFeed& feed) {
  constexpr int kSteps = 3;
  PhaseClock clock(plan_.device);
  for (int i = 0; i < kSteps; ++i) {
    clock.start();
    const auto batch = feed.next();
    clock.mark(StepPhase::data);
    step_->run(batch.images, batch.targets,
               learning_rate(schedule(), 0, options_.benchmark_warmup + options_.benchmark_iterations + i),
               &clock);
  }
  auto milliseconds = clock.sums();
  for (auto& phase : milliseconds) phase /= kSteps;
  return milliseconds;
}

void Trainer::report_benchmark(const BenchmarkReport& report) const {
  if (!world_.is_root()) return;
  const auto text = format_report(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  if (has_json()) json_->log(JsonLines::Json::array(), json_of(report));
}

void Trainer::benchmark_inference() {
  torch::NoGradGuard no_grad;
  run_in_agreement(world_, [&] {
    const auto batch_size = static_cast<std::size_t>(options_.evaluation_batch_size);
    const auto batches = (validation_set_->records().size() + batch_size - 1) / batch_size;
    SSD_VALIDATE(batches >= static_cast<std::size_t>(world_.world_size()),
                 "--mode benchmark-inference: {} batches of {} images for {} ranks; take fewer ranks",
                 batches, batch_size, world_.world_size());
  });
  model_->eval();
  model_->fold();
  EvaluationLoaderOptions loader_options;
  loader_options.share = {options_.evaluation_batch_size, world_.rank(), world_.world_size()};
  loader_options.pipeline.threads = plan_.loader_threads;
  std::optional<EvaluationLoader> loader;
  const InputTransform transform(plan_);
  std::vector<double> seconds;
  double decode_s = 0;
  Progress progress("benchmark", "iterations",
                    static_cast<std::uint64_t>(options_.benchmark_warmup + options_.benchmark_iterations));
  for (int i = 0; i < options_.benchmark_warmup + options_.benchmark_iterations; ++i) {
    const Stopwatch time;
    std::optional<LoadedBatch> batch;
    if (loader) batch = loader->next();
    if (!batch) {  // from the start of the set again
      batch.reset();
      loader.emplace(*validation_set_, loader_options);
      batch = loader->next();
      SSD_EXPECT(batch.has_value());
    }
    const auto predictions = model_->forward(transform((*batch)->images, (*batch)->size));
    const double before_decode_s = time.seconds();
    decode_detections(predictions.locations, predictions.confidences, default_boxes_);
    if (i >= options_.benchmark_warmup) {
      seconds.push_back(time.seconds());
      decode_s += seconds.back() - before_decode_s;
    }
    progress.advance();
  }
  progress.finish();
  // The ranks do not wait for each other: the mean of all is the sum of theirs.
  auto total = summarise_rates(seconds, options_.evaluation_batch_size);
  for (auto* rate : {&total.mean, &total.median, &total.least, &total.most})
    *rate = world_.reduce_all(*rate, ReduceOperation::sum);
  const double images = static_cast<double>(options_.evaluation_batch_size) * options_.benchmark_iterations;
  // On a GPU the decode also waits for the network.
  report_benchmark({"inference", total, world_.world_size(), {}, {}, 1000 * decode_s / images});
}

int run_training_program(const TrainOptions& options, const MpiComm& world) {
  Trainer trainer(options, world);
  switch (options.mode) {
    case Mode::training:
      return trainer.train();
    case Mode::evaluation:
      trainer.evaluate();
      break;
    case Mode::benchmark_training:
      trainer.benchmark_training();
      break;
    case Mode::benchmark_inference:
      trainer.benchmark_inference();
      break;
  }
  return 0;
}

}  // namespace ssd
