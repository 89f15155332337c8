#include "data/stage_on_nodes.hpp"

#include <string>

#include "comm/agreement.hpp"
#include "comm/broadcast_any_length.hpp"
#include "record/staging.hpp"

namespace ssd {

std::filesystem::path stage_on_nodes(const MpiComm& world, const std::filesystem::path& source,
                                     const std::filesystem::path& stage_dir) {
  const auto node = world.split_by_node();
  std::string folder;
  run_in_agreement(world, [&] {
    if (node.is_root()) folder = stage_shards(source, stage_dir).folder.string();
  });
  broadcast_any_length(node, folder);
  return folder;
}

}  // namespace ssd
