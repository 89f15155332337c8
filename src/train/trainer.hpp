// The training run: epochs of steps, log lines, evaluation on schedule, checkpoints; and the benchmark and
// evaluation modes, which are the same pieces with less around them. Collective throughout.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/checkpoint_saver.hpp"
#include "comm/mpi_comm.hpp"
#include "core/stopwatch.hpp"
#include "model/ssd300.hpp"
#include "record/shard_set.hpp"
#include "report/json_lines.hpp"
#include "train/batch_feed.hpp"
#include "train/benchmark_report.hpp"
#include "train/compute_plan.hpp"
#include "train/evaluation.hpp"
#include "train/run_curves.hpp"
#include "train/train_options.hpp"
#include "train/train_step.hpp"
#if SSD_WITH_CUDA
#include "train/step_graph.hpp"
#endif
#include "train/training_checkpoint.hpp"

namespace ssd {

// Runs what the options ask for; returns the exit code. Throws AgreedFailure (comm/agreement.hpp) for what
// all ranks know of, any other exception for what only this rank met.
int run_training_program(const TrainOptions& options, const MpiComm& world);

class Trainer {
 public:
  Trainer(const TrainOptions& options, const MpiComm& world);

  // The exit code: 0, or 75 (core/stop_signals.hpp) where a signal asked it to end.
  int train();
  void evaluate();  // once, the model of --checkpoint
  void benchmark_training();
  void benchmark_inference();

 private:
  void open_data();
  void read_start();
  std::vector<CategoryId> find_category_ids() const;
  void agree_on_network();
  void make_model();
  void load_start();
  void expect_same_start() const;
  void log_start() const;
  std::unique_ptr<TrainLoader> make_train_loader() const;
  void log_cache(TrainLoader& loader) const;  // what was found since the last time
  LearningRateOptions schedule() const;
  PhaseClock::Milliseconds time_phases(BatchFeed& feed);
  void report_benchmark(const BenchmarkReport& report) const;
  DeviceBatch next_batch(BatchFeed& feed);
  torch::Tensor run_step(const DeviceBatch& batch, double rate);
  void finish_epoch(std::int64_t epoch);
  void start_evaluation(std::int64_t epoch);
  void report_scores(bool waits);
  void report_evaluation(std::int64_t epoch, const EvaluationReport& report);
  std::string way_back() const;
  void save(const TrainingPosition& position, const std::string& name);
  int stop(std::int64_t iteration);
  // What a rank asks of all (comm/shared_flags.hpp).
  static constexpr std::uint32_t kStop = 1, kSave = 2;
  std::uint32_t own_flags() const;
  std::optional<std::filesystem::path> start_file() const;
  void adapt_position(const ResumedFacts& resumed);
  void broadcast_state();    // rank 0's weights, statistics and momentum to all
  void broadcast_buffers();  // rank 0's BatchNorm statistics to all
  bool has_json() const { return json_ != nullptr; }

  TrainOptions options_;
  const MpiComm& world_;
  RankPlacement placement_;
  CpuCapabilities cpu_;
  ComputePlan plan_;
  std::uint64_t seed_ = 0;
  Backbone backbone_ = Backbone::resnet50;
  std::vector<CategoryId> category_ids_;  // of the network's labels 1, 2, ...: find_category_ids
  std::optional<ShardSet> train_set_;
  std::optional<ShardSet> validation_set_;
  std::optional<Evaluator> evaluator_;
  std::unique_ptr<Ssd300> model_;
  std::unique_ptr<ParameterArena> arena_;
  std::unique_ptr<LossScaler> scaler_;
  std::unique_ptr<GradientCommunicator> communicator_;
  std::unique_ptr<GradientReducer> reducer_;
  std::unique_ptr<TrainStep> step_;
#if SSD_WITH_CUDA
  std::unique_ptr<StepGraph> graph_;  // with --cuda-graph
#endif
  std::optional<CheckpointItem> start_;  // rank 0: the file to go on from, until it is loaded
  TrainingPosition position_;
  bool is_resumed_ = false;
  std::unique_ptr<CheckpointSaver> saver_;  // rank 0, with --save, in training
  Stopwatch since_save_;
  std::unique_ptr<JsonLines> json_;  // rank 0, with --json-summary
  struct PendingScores {
    std::int64_t epoch = 0;
    std::future<EvaluationReport> report;  // not valid: there is none
  };
  PendingScores pending_scores_;       // rank 0
  std::unique_ptr<RunCurves> curves_;  // rank 0, with --plot, in training
};

}  // namespace ssd
