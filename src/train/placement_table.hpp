// The table of a run's ranks, printed once at its start: where each rank runs, on what device and CPUs, with
// how many threads; and the warning where ranks share cores.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "comm/mpi_comm.hpp"
#include "comm/placement.hpp"

namespace ssd {

struct PlacementRow {
  int rank = 0;
  RankPlacement place;
  std::string device;  // "cpu", "cuda:0"
  int compute_threads = 1;
  int loader_threads = 1;
};

// Collective. Every rank's row on rank 0, in rank order; empty on the others.
std::vector<PlacementRow> gather_placement(const MpiComm& world, const PlacementRow& own);

// Rank 0 prints the table, and the warning where there is one. Local.
void log_placement(std::span<const PlacementRow> rows);

// Up to 16 ranks a line each, of more one line for the ranks of a node that are alike. Without '\n' at its
// end. Pure.
std::string format_placement(std::span<const PlacementRow> rows);

// Of the ranks that may run on the same cores alone, and are more than these, the most crowded; empty where
// every rank can have a core of its own. Pure.
std::string overload_warning(std::span<const PlacementRow> rows);

// For the log of a run: an array of an object for each rank. Pure.
nlohmann::ordered_json placement_json(std::span<const PlacementRow> rows);

}  // namespace ssd
