// Values whose average over all ranks is known, to check a gradient communicator with: each rank puts in its
// own whole numbers from -16 to 16, and what comes out is compared with their average. The values repeat with
// a prime period, so that a part of a buffer that was left out, doubled or moved by a chunk of any round size
// shows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/gradient_communicator.hpp"

namespace ssd {

class KnownValues {
 public:
  // type: float16 or float32. prescale: what the communicator wants its values multiplied by.
  KnownValues(WireType type, int rank, int world_size, double prescale);

  // What this rank puts in: a buffer of any length is filled with this again and again.
  std::span<const std::byte> own() const { return own_; }

  // How many of these averages are wrong. They are of the type, and the first is the start of an own().
  std::size_t count_wrong(std::span<const std::byte> averages) const;

  // What an average may be off by; 0, where every sum and product on the way can be represented: a power of
  // two of ranks, up to 128 in FP16. Else world_size * 16 * u, u = 2^-11 (FP16) or 2^-24: each rank's value
  // is at most 16 / world_size and rounded once, and so is each of world_size - 1 sums, which are at most 16.
  double tolerance() const { return tolerance_; }

 private:
  WireType type_;
  double tolerance_;
  std::vector<std::byte> own_;
  std::vector<double> averages_;  // of a period
};

}  // namespace ssd
