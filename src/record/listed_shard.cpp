#include "record/listed_shard.hpp"

#include <algorithm>
#include <system_error>

#include "core/error.hpp"
#include "record/file_names.hpp"

namespace ssd {

namespace fs = std::filesystem;

void validate_file_size(const fs::path& path, const ShardSummary& expected) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  SSD_VALIDATE(!error, "shard '{}': {}; copy it again or run ssd_preprocess again", path.string(),
               error == std::errc::no_such_file_or_directory ? "missing" : error.message());
  SSD_VALIDATE(size == expected.file_bytes,
               "shard '{}': {} bytes, the manifest says {}: {}; copy it again or run ssd_preprocess again",
               path.string(), size, expected.file_bytes,
               size < expected.file_bytes ? "cut off" : "not the file of this set");
}

ShardOnDisk read_listed_shard(const fs::path& folder, const Manifest& manifest, std::size_t index) {
  const auto& expected = manifest.shards[index];
  const auto path = folder / expected.file_name;
  const auto count = manifest.shards.size();
  const auto place = parse_shard_file_name(expected.file_name);
  SSD_VALIDATE(place && *place == (ShardName{manifest.split, static_cast<std::uint32_t>(index),
                                             static_cast<std::uint32_t>(count)}),
               "shard '{}': not the name of {} shard {} of {}", path.string(), split_name(manifest.split),
               index, count);
  validate_file_size(path, expected);
  auto shard = read_shard(path);
  const auto& header = shard.header;
  SSD_VALIDATE(
      header.set_identity == manifest.set_identity,
      "shard '{}': belongs to another set ({}, the manifest says {}); do not mix the files of two runs",
      path.string(), header.set_identity, manifest.set_identity);
  SSD_VALIDATE(header.split == manifest.split && header.index == index && header.count == count,
               "shard '{}': is {} shard {} of {} under a wrong name", path.string(), split_name(header.split),
               header.index, header.count);
  SSD_VALIDATE(
      shard.digest.hex() == expected.content_digest,
      "shard '{}': its content is not what the manifest says; copy both again or run ssd_preprocess again",
      path.string());
  const auto image_count = shard.data.image_ids.size(), annotation_count = shard.data.annotation_ids.size();
  SSD_VALIDATE(
      image_count == expected.image_count && annotation_count == expected.annotation_count,
      "shard '{}': {} images and {} annotations, the manifest says {} and {}; copy both again or run "
      "ssd_preprocess again",
      path.string(), image_count, annotation_count, expected.image_count, expected.annotation_count);
  return shard;
}

std::vector<Category> categories_of(const ShardData& data) {
  std::vector<Category> categories;
  for (std::size_t i = 0; i < data.category_ids.size(); ++i)
    categories.push_back({CategoryId(data.category_ids[i]), data.category_names.at(i)});
  return categories;
}

bool equal(const std::vector<Category>& a, const std::vector<Category>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Category& x, const Category& y) { return x.id == y.id && x.name == y.name; });
}

bool is_picture_whole(const ShardOnDisk& shard, std::size_t i, const ShardBytes& bytes,
                      std::vector<std::byte>& buffer) {
  return bytes
      .read_if_whole(shard.jpeg_data_offset + shard.data.jpeg_offsets[i], shard.data.jpeg_bytes[i],
                     shard.data.jpeg_crc32s[i], buffer)
      .has_value();
}

std::string describe_picture(const fs::path& path, std::int64_t image_id, const std::string& file_name,
                             std::uint64_t byte_offset) {
  return fmt::format("shard '{}': the picture of image {} ('{}') at byte {}", path.string(), image_id,
                     file_name, byte_offset);
}

}  // namespace ssd
