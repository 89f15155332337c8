#include "train/learning_rate.hpp"

#include <algorithm>
#include <cmath>

namespace ssd {

double full_learning_rate(const LearningRateOptions& options) {
  return options.base * options.world_size * options.batch_size / 32;
}

double learning_rate(const LearningRateOptions& options, std::int64_t epoch, std::int64_t iteration) {
  const auto passed = std::count_if(options.milestone_epochs.begin(), options.milestone_epochs.end(),
                                    [&](int milestone) { return milestone <= epoch; });
  const double rate = full_learning_rate(options) * std::pow(0.1, passed);
  if (iteration >= options.warmup_iterations) return rate;
  return rate * static_cast<double>(iteration) / static_cast<double>(options.warmup_iterations);
}

}  // namespace ssd
