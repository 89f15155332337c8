// A shard that a manifest lists, read and compared with what the manifest says of it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "coco/annotations.hpp"
#include "record/manifest.hpp"
#include "record/shard_file.hpp"

namespace ssd {

// manifest.shards[index] in the folder. Throws Error that names the file: missing, cut off, damaged, of
// another set, under a wrong name.
ShardOnDisk read_listed_shard(const std::filesystem::path& folder, const Manifest& manifest,
                              std::size_t index);

std::vector<Category> categories_of(const ShardData& data);
bool equal(const std::vector<Category>& a, const std::vector<Category>& b);

// "shard 'x.h5': the picture of image 7 ('a.jpg') at byte 4096": how messages name a record.
std::string describe_picture(const std::filesystem::path& path, std::int64_t image_id,
                             const std::string& file_name, std::uint64_t byte_offset);

}  // namespace ssd
