// The learning rate of each iteration: a pure function. Reference's recipe (linear warmup, steps of 0.1),
// with the full rate from the end of the warmup on.
#pragma once

#include <cstdint>
#include <vector>

namespace ssd {

struct LearningRateOptions {
  double base = 2.6e-3;  // for a global batch of 32
  int world_size = 1;
  int batch_size = 32;  // per rank
  std::int64_t warmup_iterations = 0;
  std::vector<int> milestone_epochs = {43, 54};  // zero-based; the rate is divided by ten before each
};

// base * ranks * batch / 32: Goyal et al. 2017, "Linear Scaling Rule".
double full_learning_rate(const LearningRateOptions& options);

// epoch and iteration count from 0, the iteration over the whole run.
double learning_rate(const LearningRateOptions& options, std::int64_t epoch, std::int64_t iteration);

}  // namespace ssd
