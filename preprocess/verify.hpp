// Looks at a set that exists: whether it is whole and, where its source is named, right; and what it holds.
#pragma once

#include "comm/mpi_comm.hpp"
#include "preprocess/options.hpp"

namespace ssd {

// Collective: the ranks share the shards. For each split in the folder: the manifest, each shard's digest,
// the CRC-32 of each picture; with a source also each record against the annotations, and size and digest of
// each picture's file (that the pixels are those of the file was proven when it was packed). Prints a line
// for a split that is right; else all that is wrong, and throws AgreedFailure on all ranks.
void verify_sets(const PreprocessOptions& options, const MpiComm& world);

// Prints what the sets in the folder hold. Local. Throws Error where one cannot be read.
void print_info(const PreprocessOptions& options);

}  // namespace ssd
