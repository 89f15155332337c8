// One shard: made from its pictures, or kept as an earlier run left it. Starts threads; HDF5 is called in the
// calling thread alone. Holds one shard's JPEG data and a few pictures a thread in memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "preprocess/check_image.hpp"
#include "preprocess/pack_plan.hpp"
#include "preprocess/source_set.hpp"

namespace ssd {

struct ImageProblem {
  std::size_t place = 0;  // in the plan's images
  ImageProblemKind kind = ImageProblemKind::none;
  std::string text;  // one line
};

enum class WriteShard { yes, no };  // no: the pictures are checked only

struct ShardWork {
  const SourceSet& source;
  const PackPlan& plan;
  unsigned threads = 1;
  std::function<void()> advance;  // called for each image, in the calling thread
};

// Writes shard `shard` of the plan to path (SetFolder::temporary_path), and returns what is wrong with its
// pictures: such ones are left out of train shards, and kept without a picture in val shards. Without
// skip_bad nothing is written where something is wrong. Throws Error where writing fails or a picture's file
// is not as long as it was.
std::vector<ImageProblem> pack_shard(const ShardWork& work, std::uint32_t shard, WriteShard write,
                                     const std::filesystem::path& path);

// Whether there is a file at path that pack_shard would write: of this set's identity, undamaged, its
// pictures made from what is in their files now. What is wrong with pictures is appended to problems.
bool is_packed_already(const ShardWork& work, std::uint32_t shard, const std::filesystem::path& path,
                       std::vector<ImageProblem>& problems);

}  // namespace ssd
