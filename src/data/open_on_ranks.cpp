#include "data/open_on_ranks.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "comm/agreement.hpp"
#include "comm/broadcast_any_length.hpp"
#include "core/error.hpp"
#include "record/set_metadata.hpp"

namespace ssd {

ShardSet open_on_ranks(const MpiComm& world, const std::filesystem::path& folder, Split split) {
  SetMetadata metadata;
  std::vector<std::byte> bytes;
  run_in_agreement(world, [&] {
    if (!world.is_root()) return;
    metadata = read_set_metadata(folder, split);
    if (world.world_size() > 1) bytes = to_bytes(metadata);
  });
  broadcast_any_length(world, bytes);

  std::optional<ShardSet> set;
  run_in_agreement(world, [&] {
    if (!world.is_root()) {
      metadata = set_metadata_of(bytes);
      const auto own = read_set_manifest(folder, split).set_digest;
      SSD_VALIDATE(own == metadata.manifest.set_digest,
                   "rank {} and rank 0 see other {} shards: on rank {} '{}' has digest {}, on rank 0 {}; use "
                   "the same shards on all nodes",
                   world.rank(), split_name(split), world.rank(), folder.string(), own,
                   metadata.manifest.set_digest);
    }
    bytes = std::vector<std::byte>();  // = {} would keep the memory
    set.emplace(folder, std::move(metadata));
  });
  return std::move(*set);
}

}  // namespace ssd
