// Shards on a disk of the node's own: copies what a folder of sets holds into a folder named after the sets'
// digests, so that jobs with the same shards share one copy and jobs with others do not meet. Local: no MPI;
// stage_on_nodes (data/) calls it on one rank of each node. Processes of one node that stage the same sets at
// once wait for the first of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace ssd {

struct StagedShards {
  std::filesystem::path folder;  // to open in place of the source
  std::size_t copied_files = 0;  // 0: all were there already
  std::uint64_t copied_bytes = 0;
};

// Copies the shards of both splits, as far as the source has them, to stage_dir/shards-<digest>; a split's
// manifest last. A shard that is there with the size that the manifest lists is kept: each gets its name only
// after its source's metadata were found to match the content digest, and the copy, synced and read back from
// the disk, to equal what was read (XXH3-128). Nothing is written where all is there. A source without any
// set is returned as it is, for ShardSet::open to say what is wrong with it.
// Throws Error: no space (checked before the first byte), a folder that cannot be written, a source that is
// damaged or does not match its manifest. What has been copied whole by then remains for the next call.
StagedShards stage_shards(const std::filesystem::path& source, const std::filesystem::path& stage_dir);

}  // namespace ssd
