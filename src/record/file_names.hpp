// Names of the files of a set of shards (FORMAT.md, "Files of a set"), made and parsed here alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "record/split.hpp"

namespace ssd {

struct ShardName {
  Split split = Split::train;
  std::uint32_t index = 0;  // from 0
  std::uint32_t count = 0;
  friend bool operator==(const ShardName&, const ShardName&) = default;
};

inline constexpr std::uint32_t kMostShards = 99999;  // five digits

std::string shard_file_name(const ShardName& name);
// Nothing where the name is not exactly that of a shard.
std::optional<ShardName> parse_shard_file_name(std::string_view file_name);

// A shard that is whole and waits for the others of its set.
std::string waiting_file_name(const ShardName& name);
std::optional<ShardName> parse_waiting_file_name(std::string_view file_name);

std::string manifest_file_name(Split split);
std::string lock_file_name(Split split);

}  // namespace ssd
