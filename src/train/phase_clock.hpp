// Where a training step's time goes: a clock that is stopped at the end of each phase. It waits for the
// device at each mark, so phases do not overlap while it is used: for benchmarks only.
#pragma once

#include <torch/torch.h>

#include <array>
#include <chrono>

namespace ssd {

enum class StepPhase { data, forward, backward, exposed_communication, optimizer };
inline constexpr std::array kStepPhaseNames{"data", "forward", "backward", "exposed_comm", "optimizer"};

class PhaseClock {
 public:
  using Milliseconds = std::array<double, kStepPhaseNames.size()>;

  explicit PhaseClock(torch::Device device) : device_(device) {}

  void start();                // of a step
  void mark(StepPhase phase);  // adds the time since the last mark to this phase
  const Milliseconds& sums() const { return sums_; }

 private:
  void wait_for_device() const;

  torch::Device device_;
  std::chrono::steady_clock::time_point last_;
  Milliseconds sums_{};
};

}  // namespace ssd
