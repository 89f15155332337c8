// The log of training steps: losses are summed on the device and looked at when a line is due, so that steps
// in between do not wait for the device.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <string>

#include "comm/mpi_comm.hpp"
#include "core/stopwatch.hpp"
#include "report/json_lines.hpp"
#include "train/loss_scaler.hpp"

namespace ssd {

struct StepLogOptions {
  std::int64_t images_per_iteration = 0;  // of all ranks
  std::int64_t total_iterations = 0;
  JsonLines* json = nullptr;              // on rank 0, or null
  bool skips_nonfinite = false;           // losses that are not finite are left out of the mean
  std::function<std::string()> way_back;  // on rank 0: a sentence on the checkpoint to go on from
};

struct StepTimes {
  double data_ms = 0;          // waited for the loader
  double exposed_comm_ms = 0;  // waited for the allreduce after backward; NaN where it is not known
};

// A model that knows nothing has a loss of about 4 log(classes + 1) from its confidences (three negatives to
// a positive) and some units from its boxes: 20 to 40. A thousand times that is no training.
inline constexpr double kRunawayLoss = 3e4;

class StepLog {
 public:
  StepLog(const MpiComm& world, const LossScaler& scaler, const StepLogOptions& options);

  // loss: a scalar on the device, of this rank's step. Local; does not wait for the device.
  void add(const torch::Tensor& loss, const StepTimes& times);

  // Collective. A line on rank 0 with the mean over the steps since the last one and over ranks; the mean
  // loss is returned on every rank. Throws AgreedFailure on every rank, after one line, where it is not
  // finite, or above kRunawayLoss: such a run does not come back.
  double flush(std::int64_t epoch, std::int64_t iteration, double learning_rate);

  void restart_clock();  // after a pause (evaluation, a save) that is not a step's

 private:
  const MpiComm& world_;
  const LossScaler& scaler_;
  StepLogOptions options_;
  torch::Tensor loss_sum_;  // (2): of the losses that count, and their number
  std::int64_t steps_ = 0;
  StepTimes times_;
  Stopwatch time_;
  double timed_seconds_ = 0;  // of all steps logged so far, for the time left
  std::int64_t timed_steps_ = 0;
};

}  // namespace ssd
