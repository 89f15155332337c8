#include "record/shard_file.hpp"

#include <vector>

#include "core/atomic_file.hpp"
#include "core/error.hpp"
#include "record/hdf5.hpp"

namespace ssd {
namespace {

constexpr const char* kFormatName = "ssd-shard";
constexpr const char* kJpegDataset = "jpeg";
constexpr const char* kRestartDataset = "restart/offset";
constexpr std::uint64_t kAlignmentBytes = 4096;  // a page, and a block of common file systems

ShardHeader read_header(const Hdf5File& file) {
  SSD_VALIDATE(read_hdf5_text_attribute(file, "format") == kFormatName, "is not a shard of this program");
  const auto version = read_hdf5_uint32_attribute(file, "format_version");
  SSD_VALIDATE(version == kShardFormatVersion,
               "format version {} (this build reads {}); run ssd_preprocess again", version,
               kShardFormatVersion);
  ShardHeader header;
  const auto split = read_hdf5_text_attribute(file, "split");
  SSD_VALIDATE(split == "train" || split == "val", "split '{}'", split);
  header.split = split == "train" ? Split::train : Split::val;
  header.index = read_hdf5_uint32_attribute(file, "shard_index");
  header.count = read_hdf5_uint32_attribute(file, "shard_count");
  header.set_identity = read_hdf5_text_attribute(file, "set_identity");
  header.options = read_hdf5_text_attribute(file, "options");
  return header;
}

ShardOnDisk read_open_shard(const Hdf5File& file) {
  ShardOnDisk shard;
  shard.header = read_header(file);
  visit_datasets(shard.data, [&](const char* name, auto& rows) { read_hdf5_dataset(file, name, rows); });
  shard.digest = content_digest(shard.header, shard.data);
  SSD_VALIDATE(shard.digest.hex() == read_hdf5_text_attribute(file, "content_digest"),
               "damaged: its content does not match its digest; copy it again or run ssd_preprocess again");
  validate(shard.data, count_hdf5_rows(file, kJpegDataset, Hdf5LayoutOf<std::uint8_t>::value));
  shard.jpeg_data_offset = hdf5_data_offset(file, kJpegDataset);
  shard.restart_data_offset = hdf5_data_offset(file, kRestartDataset);
  return shard;
}

void write_file(const std::filesystem::path& path, const ShardHeader& header, const ShardData& data,
                std::span<const std::byte> jpeg_data, const Digest& digest) {
  auto file = create_hdf5_file(path, kAlignmentBytes);
  write_hdf5_attribute(file, "format", kFormatName);
  write_hdf5_attribute(file, "format_version", kShardFormatVersion);
  write_hdf5_attribute(file, "split", split_name(header.split));
  write_hdf5_attribute(file, "shard_index", header.index);
  write_hdf5_attribute(file, "shard_count", header.count);
  write_hdf5_attribute(file, "set_identity", header.set_identity);
  write_hdf5_attribute(file, "content_digest", digest.hex());
  write_hdf5_attribute(file, "options", header.options);
  for (const auto* group : {"categories", "images", "annotations", "restart"}) create_hdf5_group(file, group);
  visit_datasets(data, [&](const char* name, const auto& rows) { write_hdf5_dataset(file, name, rows); });
  write_hdf5_dataset(file, kJpegDataset, Hdf5LayoutOf<std::uint8_t>::value, jpeg_data.size(), jpeg_data);
  file.close();
}

}  // namespace

Digest write_shard(const std::filesystem::path& path, const ShardHeader& header, const ShardData& data,
                   std::span<const std::byte> jpeg_data) {
  validate(data, jpeg_data.size());
  const auto digest = content_digest(header, data);
  try {
    write_file(path, header, data, jpeg_data, digest);
  } catch (const LibraryError& error) {
    throw Error(fmt::format("cannot write shard '{}': {}", path.string(), error.what()));
  }
  sync_path(path);
  return digest;
}

ShardOnDisk read_shard(const std::filesystem::path& path) {
  try {
    return read_open_shard(open_hdf5_file(path));
  } catch (const LibraryError& error) {
    throw Error(fmt::format("shard '{}': cannot be read; copy it again or run ssd_preprocess again ({})",
                            path.string(), error.what()));
  } catch (const Error& error) {
    throw Error(fmt::format("shard '{}': {}", path.string(), error.what()));
  }
}

}  // namespace ssd
