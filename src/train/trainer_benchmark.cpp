// The benchmark modes of Trainer.
#include "train/trainer.hpp"

#include <cmath>
#include <cstring>

#include "comm/agreement.hpp"
#include "core/error.hpp"
#include "model/detection_decode.hpp"
#include "report/progress.hpp"

namespace ssd {
namespace {

void expect_finite(const torch::Tensor& loss, int iteration) {
  const auto value = loss.item<double>();
  SSD_VALIDATE(std::isfinite(value),
               "iteration {}: the loss is {}; a smaller --learning-rate or a --warmup helps", iteration,
               value);
}

}  // namespace

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
  const auto default_boxes = default_boxes_tensor().to(plan_.device);
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
    decode_detections(predictions.locations, predictions.confidences, default_boxes);
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

}  // namespace ssd
