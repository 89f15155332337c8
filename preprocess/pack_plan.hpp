// What is to be packed, decided before anything is: which images, in which order, in which shards, and the
// set's identity. Pure functions of the source and the options, so that every rank has the same plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "preprocess/pack_options.hpp"
#include "preprocess/source_set.hpp"

namespace ssd {

struct PackPlan {
  PackOptions options;
  std::vector<std::size_t> images;        // places in the source's images, in the order of the records
  std::vector<std::size_t> first_images;  // of each shard, in `images`; and the number of images
  std::vector<std::uint64_t> file_bytes;  // of each image of the source; kNoFile where there is no file
  std::string identity;                   // 32 hex digits: FORMAT.md, "Digests"

  std::uint32_t shard_count() const { return static_cast<std::uint32_t>(first_images.size() - 1); }
};

// Throws Error where there would be too many shards.
PackPlan make_plan(const SourceSet& source, std::vector<std::uint64_t> file_bytes,
                   const PackOptions& options);

}  // namespace ssd
