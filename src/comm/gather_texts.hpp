#pragma once

#include <string>
#include <vector>

#include "comm/mpi_comm.hpp"

namespace ssd {

// Collective. Each rank's text on the root, in rank order; nothing elsewhere.
std::vector<std::string> gather_texts(const MpiComm& world, const std::string& own);

}  // namespace ssd
