#include "comm/placement.hpp"

#include <sched.h>

#include <algorithm>

#include "core/log.hpp"

namespace ssd {
namespace {

cpu_set_t allowed_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0 || CPU_COUNT(&cpus) == 0) CPU_SET(0, &cpus);
  return cpus;
}

// The CPUs that any rank of the node may run on.
cpu_set_t union_over(const MpiComm& node, cpu_set_t own) {
  const auto all = node.gather(std::as_bytes(std::span(&own, 1)));
  for (const auto& bytes : all) {
    cpu_set_t other;
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&other));
    CPU_OR(&own, &own, &other);
  }
  node.broadcast_in_place(std::as_writable_bytes(std::span(&own, 1)));
  return own;
}

}  // namespace

RankPlacement find_placement(const MpiComm& world) {
  const auto node = world.split_by_node();
  const auto own = allowed_cpus();
  const auto all = union_over(node, own);
  RankPlacement placement;
  placement.local_rank = node.rank();
  placement.local_size = node.world_size();
  placement.allowed_cores = CPU_COUNT(&own);
  placement.cores = std::max(1, std::min(CPU_COUNT(&own), CPU_COUNT(&all) / node.world_size()));
  placement.host = log_identity().host;
  return placement;
}

}  // namespace ssd
