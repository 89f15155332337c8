// The log of training steps: losses are summed on the device and looked at when a line is due, so that steps
// in between do not wait for the device.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <cstdint>

#include "comm/mpi_comm.hpp"
#include "report/json_lines.hpp"
#include "train/loss_scaler.hpp"

namespace ssd {

struct StepLogOptions {
  int interval = 20;                      // iterations
  std::int64_t images_per_iteration = 0;  // of all ranks
  std::int64_t iterations_per_epoch = 0;
  std::int64_t total_iterations = 0;
  JsonLines* json = nullptr;  // on rank 0, or null
};

struct StepTimes {
  double data_ms = 0;          // waited for the loader
  double exposed_comm_ms = 0;  // waited for the allreduce after backward
};

class StepLog {
 public:
  StepLog(const MpiComm& world, const LossScaler& scaler, const StepLogOptions& options);

  void add(const torch::Tensor& loss, const StepTimes& times);  // of this rank

  // Collective. A line on rank 0 with the mean over the steps since the last one and over ranks; the mean
  // loss is returned on every rank. Throws Error on every rank where it is not finite: such a run does not
  // come back.
  double flush(std::int64_t epoch, std::int64_t iteration, double learning_rate);

  void restart_clock();  // after a pause (evaluation, a save) that is not a step's

 private:
  const MpiComm& world_;
  const LossScaler& scaler_;
  StepLogOptions options_;
  torch::Tensor loss_sum_;
  std::int64_t steps_ = 0;
  StepTimes times_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double timed_seconds_ = 0;  // of all steps logged so far, for the time left
  std::int64_t timed_steps_ = 0;
};

}  // namespace ssd
