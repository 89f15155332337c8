// A record of a shard against the annotations that it was packed from.
#pragma once

#include <cstddef>
#include <string>

#include "preprocess/source_set.hpp"
#include "record/shard_data.hpp"

namespace ssd {

// What of record i is not as in the source, with both values; empty where all is.
std::string compare_with_source(const ShardData& shard, std::size_t i, const SourceSet& source);

}  // namespace ssd
