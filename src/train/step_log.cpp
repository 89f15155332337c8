#include "train/step_log.hpp"

#include <cmath>

#include "comm/agreement.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "report/progress.hpp"

namespace ssd {

StepLog::StepLog(const MpiComm& world, const LossScaler& scaler, const StepLogOptions& options)
    : world_(world), scaler_(scaler), options_(options) {}

void StepLog::add(const torch::Tensor& loss, const StepTimes& times) {
  const auto counts = options_.skips_nonfinite ? loss.isfinite() : torch::ones_like(loss, torch::kBool);
  const auto summand =
      torch::stack({torch::where(counts, loss, torch::zeros_like(loss)), counts.to(loss.scalar_type())});
  loss_sum_ = loss_sum_.defined() ? loss_sum_ + summand : summand;
  ++steps_;
  times_.data_ms += times.data_ms;
  times_.exposed_comm_ms += times.exposed_comm_ms;
}

double StepLog::flush(std::int64_t epoch, std::int64_t iteration, double learning_rate) {
  const double steps = static_cast<double>(steps_);
  const auto own = loss_sum_.to(torch::kCPU, torch::kDouble);
  const double loss = world_.reduce_all(own[0].item<double>(), ReduceOperation::sum) /
                      world_.reduce_all(own[1].item<double>(), ReduceOperation::sum);
  const auto scaler = scaler_.state();
  run_in_agreement(world_, [&] {
    SSD_VALIDATE((std::isfinite(loss) && loss < kRunawayLoss) || !world_.is_root(),
                 "the loss is {:g} in the {} iterations up to {} (epoch {}, learning rate {:.6g}, loss scale "
                 "{}, {} steps skipped); a smaller --learning-rate or a longer --warmup helps; {}",
                 loss, steps_, iteration, epoch, learning_rate, scaler.scale, scaler.skipped_steps,
                 options_.way_back());
  });
  const double seconds = time_.seconds();
  timed_seconds_ += seconds;
  timed_steps_ += steps_;
  const double rate = steps * static_cast<double>(options_.images_per_iteration) / seconds;
  const double left_s = timed_seconds_ / static_cast<double>(timed_steps_) *
                        static_cast<double>(options_.total_iterations - iteration - 1);
  std::string line = fmt::format(
      "epoch {} iter {}/{} | loss {:.4f} | lr {:.3e} | {:.1f} img/s | step {:.0f} ms | data {:.1f} ms", epoch,
      iteration + 1, options_.total_iterations, loss, learning_rate, rate, 1000 * seconds / steps,
      times_.data_ms / steps);
  if (!std::isnan(times_.exposed_comm_ms)) {
    line += fmt::format(" | comm exposed {:.1f} ms", times_.exposed_comm_ms / steps);
  }
  if (scaler_.is_dynamic()) line += fmt::format(" | scale {:.0f}", scaler.scale);
  if (scaler_.skips_overflows()) line += fmt::format(" | skipped {}", scaler.skipped_steps);
  log_info("{} | {} left", line, format_duration(left_s));
  if (options_.json != nullptr) {
    options_.json->log({epoch, iteration}, {{"loss", loss},
                                            {"learning_rate", learning_rate},
                                            {"img/sec", rate},
                                            {"data_ms", times_.data_ms / steps},
                                            {"exposed_comm_ms", times_.exposed_comm_ms / steps},
                                            {"loss_scale", scaler.scale},
                                            {"skipped_steps", scaler.skipped_steps}});
  }
  loss_sum_ = torch::Tensor();
  steps_ = 0;
  times_ = {};
  restart_clock();
  return loss;
}

void StepLog::restart_clock() {
  time_ = {};
}

}  // namespace ssd
