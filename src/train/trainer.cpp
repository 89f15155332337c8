#include "train/trainer.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "boxes/constants.hpp"
#include "checkpoint/class_count.hpp"
#include "checkpoint/file_names.hpp"
#include "comm/agreement.hpp"
#include "comm/broadcast_any_length.hpp"
#include "comm/gather_texts.hpp"
#include "comm/shared_flags.hpp"
#include "comm/watchdog.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/phase.hpp"
#include "core/stop_signals.hpp"
#include "core/stopwatch.hpp"
#include "data/match_classes.hpp"
#include "data/open_on_ranks.hpp"
#include "data/stage_on_nodes.hpp"
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

// Another value for an option in the lines of --print-config: the one that is used.
void set_configured(std::string& configuration, const std::string& option, const std::string& value) {
  const auto beginning = option + " = ";
  auto at = configuration.find('\n' + beginning);
  if (at == std::string::npos) return;
  at += 1 + beginning.size();
  configuration.replace(at, configuration.find('\n', at) - at, value);
}

}  // namespace

Trainer::Trainer(const TrainOptions& options, const MpiComm& world)
    : options_(options), world_(world), placement_(find_placement(world)), cpu_(find_cpu_capabilities()) {
  torch::manual_seed(0);
  seed_ = choose_seed(options_, world_);
  if (!options_.stage_dir.empty()) {
    const PhaseMark mark("copying the shards to its node");
    options_.data = stage_on_nodes(world_, options_.data, options_.stage_dir);
  }
  run_in_agreement(world_, [&] {
    SSD_VALIDATE(!options_.use_step_graph || world_.world_size() == 1,
                 "--cuda-graph: for one rank, these are {}", world_.world_size());
    plan_ = plan_compute(options_, placement_, cpu_, visible_device_count());
    apply_compute_plan(plan_, options_);
  });
  open_data();
  agree_on_one_gpu_each(world_, placement_, plan_.device.is_cuda() ? plan_.device.index() : -1);
  expect_same_start();
  run_in_agreement(world_, [&] { read_start(); });
  agree_on_network();
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
  const PhaseMark mark("opening the shards");
  const bool needs_validation =
      options_.mode == Mode::evaluation || options_.mode == Mode::benchmark_inference ||
      (options_.mode == Mode::training && !options_.evaluation.empty() &&
       *std::min_element(options_.evaluation.begin(), options_.evaluation.end()) < options_.epochs);
  if (trains(options_.mode)) train_set_.emplace(open_on_ranks(world_, options_.data, Split::train));
  if (needs_validation) {
    validation_set_.emplace(open_on_ranks(world_, options_.data, Split::val));
  }
}

// Nodes may differ in hardware. Ranks that computed in other types would send each other messages of other
// lengths.
void Trainer::expect_same_start() const {
  const auto own =
      fmt::format("computes on {} in {}, gradients in {}", plan_.device.is_cuda() ? "CUDA" : "CPU",
                  c10::toString(plan_.arena.compute_type), wire_type_name(plan_.wire_type));
  const auto all = gather_texts(world_, own);
  run_in_agreement(world_, [&] {
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      const auto& other = all[rank];
      SSD_VALIDATE(
          other == own,
          "rank {} and rank 0 do not fit together: rank {} {}; rank 0 {}; use the same kind of nodes, or "
          "--device cpu without --fp16",
          rank, rank, other, own);
    }
  });
}

// The categories of the network's labels 1, 2, ... in what is evaluated, else in what is trained on.
// On rank 0.
std::vector<CategoryId> Trainer::find_category_ids() const {
  const auto folder = options_.data.string();
  const auto train =
      train_set_ ? network_classes("the train shards", train_set_->categories()) : NetworkClasses{};
  if (!validation_set_) return train.ids;
  const auto& evaluated = validation_set_->categories();
  const auto whose = fmt::format("the val shards in '{}'", folder);
  if (train_set_)
    return expect_known_classes(train, whose, evaluated,
                                "pack both splits from annotations with the same ids and names");
  const auto names = start_ ? class_names_of(*start_) : std::nullopt;
  if (!names) return network_classes(whose, evaluated).ids;
  return expect_known_classes({fmt::format("checkpoint '{}'", start_->source()), *names, {}}, whose,
                              evaluated, "take the data set that it was trained on");
}

// Collective. Rank 0 alone has read the file that says what the network is.
void Trainer::agree_on_network() {
  run_in_agreement(world_, [&] {
    if (!world_.is_root()) return;
    backbone_ = start_ ? backbone_for(*start_, options_.backbone) : options_.backbone.value_or(backbone_);
    category_ids_ = find_category_ids();
  });
  world_.broadcast_in_place(std::as_writable_bytes(std::span(&backbone_, 1)));
  broadcast_any_length(world_, category_ids_);
  set_configured(options_.configuration, "backbone", backbone_name(backbone_));
}

void Trainer::make_model() {
  const PhaseMark mark("making the model");
  model_ = std::make_unique<Ssd300>(backbone_, static_cast<int>(category_ids_.size()) + 1);
  if (validation_set_) {
    evaluator_.emplace(*validation_set_, category_ids_, options_.evaluation_batch_size,
                       options_.evaluation_records);
  }
  initialise_weights(*model_, seed_);
  if (world_.is_root() && !options_.backbone_path.empty() && !start_) {
    load_backbone(read_checkpoint_file(options_.backbone_path), *model_);
  }
  model_->to(plan_.device);
  model_->train(trains(options_.mode));
  arena_ = std::make_unique<ParameterArena>(*model_, plan_.arena);
  scaler_ = std::make_unique<LossScaler>(plan_.loss_scaling, plan_.device);
}

LearningRateOptions Trainer::schedule() const {
  return {options_.learning_rate, world_.world_size(), options_.batch_size, options_.warmup_iterations,
          options_.multistep};
}

void Trainer::log_start() const {
  log_info("ssd_train {}: SSD300 with {}, {} classes and the background, seed {}", SSD_VERSION,
           backbone_name(backbone_), model_->class_count() - 1, seed_);
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
  loader.decoded_cache_bytes = static_cast<std::uint64_t>(options_.decoded_cache_gib * 0x1p30);
  loader.pipeline.threads = plan_.loader_threads;
  loader.pipeline.allocate = pixel_allocator(plan_);
  return std::make_unique<TrainLoader>(*train_set_, loader);
}

DeviceBatch Trainer::next_batch(BatchFeed& feed) {
  const PhaseMark mark("waiting for the next batch");
  return feed.next();
}

torch::Tensor Trainer::run_step(const DeviceBatch& batch, double rate) {
  const PhaseMark mark("computing a step");
#if SSD_WITH_CUDA
  if (graph_) return graph_->run(batch.images, batch.targets, rate);
#endif
  return step_->run(batch.images, batch.targets, rate);
}

int Trainer::train() {
  const PhaseMark mark("training");
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
  StepLog log(world_, *scaler_,
              {std::int64_t{options_.batch_size} * world_.world_size(), options_.epochs * iterations,
               json_.get(), options_.skips_nonfinite, [this] { return way_back(); }});
  while (position_.epoch < options_.epochs) {
    const auto epoch = position_.epoch;
    const Stopwatch epoch_time;
    for (; position_.iteration_in_epoch < iterations; ++position_.iteration_in_epoch, ++position_.iteration) {
      const double rate = learning_rate(schedule(), epoch, position_.iteration);
      const auto batch = next_batch(feed);
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
    log_cache(*loader);
    if (has_json()) json_->log({epoch}, {{"time", epoch_time.seconds()}});
    finish_epoch(epoch);
    log.restart_clock();
    if (is_stopping && position_.epoch < options_.epochs) return stop(position_.iteration);
  }
  report_scores(true);
  run_in_agreement(world_, [&] {
    const PhaseMark last("writing the last checkpoint");
    if (curves_) curves_->write();
    SSD_VALIDATE(!saver_ || saver_->wait(), "the last checkpoint is not written; see the warnings above");
  });
  log_info("done: {} epochs in {}", std::max(std::int64_t{0}, options_.epochs - first_epoch),
           format_duration(time.seconds()));
  if (has_json()) json_->log(JsonLines::Json::array(), {{"total time", time.seconds()}});
  return 0;
}

// Of this rank, rank 0; the others' are alike.
void Trainer::log_cache(TrainLoader& loader) const {
  if (loader.cache() == nullptr || !world_.is_root()) return;
  const auto counts = loader.cache()->take_counts();
  const double hit_rate =
      counts.lookups == 0 ? 0 : static_cast<double>(counts.hits) / static_cast<double>(counts.lookups);
  const double used_gib = static_cast<double>(loader.cache()->used_bytes()) / 0x1p30;
  log_info("decoded cache: {:.1f} % of {} pictures found, {:.2f} of {:.2f} GiB used on each rank",
           100 * hit_rate, counts.lookups, used_gib, options_.decoded_cache_gib);
  if (has_json()) json_->log({position_.epoch - 1}, {{"cache hit rate", hit_rate}});
}

std::uint32_t Trainer::own_flags() const {
  std::uint32_t flags = stop_signal() != 0 ? kStop : 0;
  if (world_.is_root() && options_.save_minutes > 0 && since_save_.seconds() >= 60 * options_.save_minutes)
    flags |= kSave;
  return flags;
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
    const PhaseMark mark("scoring an evaluation");
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
    // Two classes may have one name.
    const auto key = per_category.contains(category.name)
                         ? fmt::format("{} (id {})", category.name, category.id.value())
                         : category.name;
    per_category[key] = {{"AP", category.ap}, {"AP50", category.ap50}, {"boxes", category.box_count}};
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

int run_training_program(const TrainOptions& options, const MpiComm& world) {
  const Watchdog watchdog(world, options.watchdog_seconds);
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
