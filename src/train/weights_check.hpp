// Whether all ranks hold the same weights: they start equal and make the same updates, so that a difference
// is a fault of hardware, network or software, and what is trained from there on is not what it seems.
#pragma once

#include <string>

#include "comm/mpi_comm.hpp"
#include "core/digest.hpp"
#include "train/parameter_arena.hpp"

namespace ssd {

// XXH3 of the weights in the compute dtype: a quarter of the state, and whatever differs elsewhere shows in
// them at the next update. Local; waits for the device.
Digest digest_of_weights(const ParameterArena& arena);

// Collective. Throws AgreedFailure on every rank, after one line that names the ranks that differ from rank
// 0, unless all digests are equal. when: "at start", "after iteration 40".
void expect_same_weights(const ParameterArena& arena, const MpiComm& world, const std::string& when);

}  // namespace ssd
