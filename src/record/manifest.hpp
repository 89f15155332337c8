// The manifest of a set: FORMAT.md, "Manifest". Its presence makes the set complete.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "record/shard_writer.hpp"
#include "record/split.hpp"

namespace ssd {

struct Manifest {
  Split split = Split::train;
  std::string set_identity;  // 32 hex digits
  std::string set_digest;    // 32 hex digits
  std::vector<ShardSummary> shards;
};

// FORMAT.md, "Digests": of set_identity and the shards' digests.
Digest set_digest_of(const Manifest& manifest);

// The text of the file: the manifest and, after it, the members of `more` (an object) as they are.
std::string manifest_text(const Manifest& manifest, const nlohmann::ordered_json& more);

// Throws Error that names the file: missing, not JSON, another version, contradictory.
Manifest read_manifest(const std::filesystem::path& path);
// The same of the text of this file, for who needs that too.
Manifest parse_manifest(const std::string& text, const std::filesystem::path& path);

}  // namespace ssd
