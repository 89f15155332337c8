// A set of shards opened by all ranks while one of them reads its metadata: thousands of ranks that all did
// so would be a storm on a shared file system. Collective over world.
#pragma once

#include <filesystem>

#include "comm/mpi_comm.hpp"
#include "record/shard_set.hpp"

namespace ssd {

// Rank 0 reads and checks the metadata and hands it out; of its own folder each other rank reads the manifest
// alone, which must be that of the same set, and opens the shards. Folders may differ (local disks). Where it
// fails on any rank, one line is printed and AgreedFailure is thrown on all.
ShardSet open_on_ranks(const MpiComm& world, const std::filesystem::path& folder, Split split);

}  // namespace ssd
