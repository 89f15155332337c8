#include "train/phase_clock.hpp"

namespace ssd {

void PhaseClock::start() {
  wait_for_device();
  last_ = std::chrono::steady_clock::now();
}

void PhaseClock::mark(StepPhase phase) {
  wait_for_device();
  const auto now = std::chrono::steady_clock::now();
  sums_[static_cast<std::size_t>(phase)] += std::chrono::duration<double, std::milli>(now - last_).count();
  last_ = now;
}

void PhaseClock::wait_for_device() const {
  if (device_.is_cuda()) torch::cuda::synchronize(device_.index());
}

}  // namespace ssd
