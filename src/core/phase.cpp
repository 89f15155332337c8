#include "core/phase.hpp"

#include <atomic>

namespace ssd {
namespace {

std::atomic<const char*> what{PhaseNote().what};
std::atomic<bool> waits_for_ranks{false};
std::atomic<std::uint64_t> changes{0};

}  // namespace

void note_progress() {
  changes.store(changes.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

PhaseMark::PhaseMark(const char* phase) : before_(what.exchange(phase, std::memory_order_relaxed)) {
  note_progress();
}

PhaseMark::~PhaseMark() {
  what.store(before_, std::memory_order_relaxed);
  note_progress();
}

WaitForRanksMark::WaitForRanksMark() : before_(waits_for_ranks.exchange(true, std::memory_order_relaxed)) {
  note_progress();
}

WaitForRanksMark::~WaitForRanksMark() {
  waits_for_ranks.store(before_, std::memory_order_relaxed);
  note_progress();
}

PhaseNote current_phase() {
  return {what.load(std::memory_order_relaxed), waits_for_ranks.load(std::memory_order_relaxed),
          changes.load(std::memory_order_relaxed)};
}

}  // namespace ssd
