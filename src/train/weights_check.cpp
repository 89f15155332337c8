#include "train/weights_check.hpp"

#include <fmt/ranges.h>

#include <cstring>

#include "comm/agreement.hpp"
#include "core/error.hpp"

namespace ssd {

Digest digest_of_weights(const ParameterArena& arena) {
  Digester digester;
  for (const auto& block : arena.blocks()) {
    const auto on_host = block.weights.cpu();
    digester.update({static_cast<const std::byte*>(on_host.const_data_ptr()), on_host.nbytes()});
  }
  return digester.digest();
}

void expect_same_weights(const ParameterArena& arena, const MpiComm& world, const std::string& when) {
  const auto own = digest_of_weights(arena);
  const auto all = world.gather(std::as_bytes(std::span(&own, 1)));
  run_in_agreement(world, [&] {
    if (!world.is_root()) return;
    std::vector<int> different;
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      if (std::memcmp(all[rank].data(), &own, sizeof own) != 0) different.push_back(static_cast<int>(rank));
    }
    SSD_VALIDATE(different.empty(),
                 "the weights {} differ from rank 0's on ranks {}: a fault of memory, network or software; "
                 "go on from a "
                 "checkpoint written before, without the nodes of these ranks",
                 when, fmt::join(different, ", "));
  });
}

}  // namespace ssd
