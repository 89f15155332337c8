// What the main thread of this process is doing, noted for whoever watches it (comm/watchdog.hpp). Marks are
// made by the main thread alone and cost two stores; reading them is for any thread.
#pragma once

#include <cstdint>

namespace ssd {

// From here to the mark's end, the main thread does this; then again what it did before. what: a literal that
// follows "has been": "reading the shards".
class PhaseMark {
 public:
  explicit PhaseMark(const char* what);
  ~PhaseMark();
  PhaseMark(const PhaseMark&) = delete;
  PhaseMark& operator=(const PhaseMark&) = delete;

 private:
  const char* before_;
};

// From here to the mark's end, the main thread waits for other ranks: if that takes long, another one is to
// blame.
class WaitForRanksMark {
 public:
  WaitForRanksMark();
  ~WaitForRanksMark();
  WaitForRanksMark(const WaitForRanksMark&) = delete;
  WaitForRanksMark& operator=(const WaitForRanksMark&) = delete;

 private:
  bool before_;
};

void note_progress();  // within a long phase: it is not stuck

struct PhaseNote {
  const char* what = "starting";
  bool waits_for_ranks = false;
  std::uint64_t changes = 0;  // another number: something has been done since
};

PhaseNote current_phase();

}  // namespace ssd
