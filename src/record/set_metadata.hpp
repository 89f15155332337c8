// All that the files of one split say but the pictures: read once, and handed on as bytes to ranks that then
// need not read it themselves. Local: no MPI.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "record/manifest.hpp"
#include "record/shard_file.hpp"
#include "record/split.hpp"

namespace ssd {

struct SetMetadata {
  Manifest manifest;
  std::vector<ShardOnDisk> shards;  // as the manifest lists them, without data.restart_offsets, which would
                                    // be larger than all else
};

// Throws Error: missing, another format version, another split, damaged, a COCO folder given instead (then
// the message names the ssd_preprocess command).
Manifest read_set_manifest(const std::filesystem::path& folder, Split split);

// The same errors, and shards that are cut off, damaged or mixed from different sets.
SetMetadata read_set_metadata(const std::filesystem::path& folder, Split split);

// What a ShardSet is made of, as bytes for another process of the same program, and back. Digests, counts and
// headers of shards but their index, which are only compared when a set is read, are not carried.
std::vector<std::byte> to_bytes(const SetMetadata& metadata);
SetMetadata set_metadata_of(std::span<const std::byte> bytes);

}  // namespace ssd
