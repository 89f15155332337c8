// A shard that a manifest lists, read and compared with what the manifest says of it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "coco/annotations.hpp"
#include "record/manifest.hpp"
#include "record/shard_bytes.hpp"
#include "record/shard_file.hpp"

namespace ssd {

// Throws Error that names the file where it is missing or of another length.
void validate_file_size(const std::filesystem::path& path, const ShardSummary& expected);

// manifest.shards[index] in the folder. Throws Error that names the file: missing, cut off, damaged, of
// another set, under a wrong name.
ShardOnDisk read_listed_shard(const std::filesystem::path& folder, const Manifest& manifest,
                              std::size_t index);

std::vector<Category> categories_of(const ShardData& data);
bool equal(const std::vector<Category>& a, const std::vector<Category>& b);

// Whether the bytes of image i's picture are those that were written (CRC-32); buffer is reused.
bool is_picture_whole(const ShardOnDisk& shard, std::size_t i, const ShardBytes& bytes,
                      std::vector<std::byte>& buffer);

// "shard 'x.h5': the picture of image 7 ('a.jpg') at byte 4096": how messages name a record.
std::string describe_picture(const std::filesystem::path& path, std::int64_t image_id,
                             const std::string& file_name, std::uint64_t byte_offset);

}  // namespace ssd
