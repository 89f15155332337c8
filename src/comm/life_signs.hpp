// What ranks tell of themselves while they run, and who of them is to blame where nothing goes on. Pure.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

namespace ssd {

// Sent as bytes between ranks of one build.
struct LifeSign {
  std::array<char, 64> phase{};       // zero-terminated, see core/phase.hpp
  double seconds_without_change = 0;  // since the phase or a count within it changed
  bool waits_for_ranks = false;
  bool is_last = false;  // the rank has ended its work
};

LifeSign make_life_sign(const char* phase, double seconds_without_change, bool waits_for_ranks);

struct WatchedRank {
  int rank = 0;
  std::string host;
  LifeSign sign;              // the last one that came
  double silent_seconds = 0;  // since it came
};

// One line that names the first rank that has been silent for longer; nothing where there is none.
std::optional<std::string> find_silent_rank(std::span<const WatchedRank> ranks, double deadline_s);

// One line that names the rank to blame, what it does and for how long; nothing while all is well. In this
// order: a rank that gives no sign of life; one that is stuck in work of its own, the longest first; all
// ranks, where each waits for others. A rank that waits is not to blame while another one works.
std::optional<std::string> find_stuck_rank(std::span<const WatchedRank> ranks, double deadline_s);

}  // namespace ssd
