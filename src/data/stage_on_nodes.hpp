// Shards copied to each node's own disk before they are opened: see record/staging.hpp. Collective over
// world.
#pragma once

#include <filesystem>

#include "comm/mpi_comm.hpp"

namespace ssd {

// One rank of each node copies, the others wait, reading nothing. Returns the folder to open, the same on the
// ranks of a node. Where it fails on any node, one line is printed and AgreedFailure is thrown on all ranks.
std::filesystem::path stage_on_nodes(const MpiComm& world, const std::filesystem::path& source,
                                     const std::filesystem::path& stage_dir);

}  // namespace ssd
