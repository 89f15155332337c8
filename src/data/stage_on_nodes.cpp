#include "data/stage_on_nodes.hpp"

#include <span>
#include <string>

#include "comm/agreement.hpp"
#include "record/staging.hpp"

namespace ssd {

std::filesystem::path stage_on_nodes(const MpiComm& world, const std::filesystem::path& source,
                                     const std::filesystem::path& stage_dir) {
  const auto node = world.split_by_node();
  std::string folder;
  run_in_agreement(world, [&] {
    if (node.is_root()) folder = stage_shards(source, stage_dir).folder.string();
  });
  folder.resize(static_cast<std::size_t>(
      node.reduce_all(static_cast<std::int64_t>(folder.size()), ReduceOperation::max)));
  node.broadcast_in_place(std::as_writable_bytes(std::span(folder)));
  return folder;
}

}  // namespace ssd
