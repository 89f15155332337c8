#include "record/set_metadata.hpp"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "core/error.hpp"
#include "record/file_names.hpp"
#include "record/listed_shard.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

// Says what the folder is instead of a set, with what to do about it.
void validate_folder(const fs::path& folder, Split split) {
  std::error_code ignored;
  SSD_VALIDATE(fs::exists(folder, ignored),
               "no folder '{}'; give the folder that ssd_preprocess wrote, with --data or SSD_DATA",
               folder.string());
  SSD_VALIDATE(fs::is_directory(folder, ignored),
               "'{}' is not a folder; give the folder that ssd_preprocess wrote", folder.string());
  if (fs::exists(folder / manifest_file_name(split), ignored)) return;
  if (fs::is_directory(folder / "annotations", ignored)) {
    auto name = folder.string();
    while (name.size() > 1 && name.ends_with('/')) name.pop_back();
    throw Error(
        fmt::format("'{}' is a COCO folder, not a set of shards; pack it once: ssd_preprocess {} {}-shards",
                    folder.string(), name, name));
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto shard = parse_shard_file_name(entry.path().filename().string());
    SSD_VALIDATE(
        !shard || shard->split != split,
        "'{}': the {} shards are not complete (no '{}'): the run that wrote them did not finish; run "
        "ssd_preprocess again",
        folder.string(), split_name(split), manifest_file_name(split));
  }
  throw Error(fmt::format("'{}': no {} shards (no '{}'); write them with ssd_preprocess COCO {}",
                          folder.string(), split_name(split), manifest_file_name(split), folder.string()));
}

class ByteWriter {
 public:
  static constexpr bool kReads = false;

  template <class T>
  void rows(const T& rows) {
    static_assert(std::is_trivially_copyable_v<typename T::value_type>);
    value(std::uint64_t{rows.size()});
    const auto bytes = std::as_bytes(std::span(rows));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <class T>
  void value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  static constexpr bool kReads = true;

  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  void rows(T& rows) {
    static_assert(std::is_trivially_copyable_v<typename T::value_type>);
    std::uint64_t count = 0;
    value(count);
    SSD_EXPECT(count <= bytes_.size() / sizeof(typename T::value_type));
    rows.resize(count);
    copy(std::as_writable_bytes(std::span(rows)));
  }
  template <class T>
  void value(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    copy(std::as_writable_bytes(std::span(&value, 1)));
  }
  bool is_at_end() const { return bytes_.empty(); }

 private:
  void copy(std::span<std::byte> out) {
    SSD_EXPECT(out.size() <= bytes_.size());
    std::copy_n(bytes_.begin(), out.size(), out.begin());
    bytes_ = bytes_.subspan(out.size());
  }

  std::span<const std::byte> bytes_;
};

// The one order of the bytes, for both ways.
template <class Bytes, class Metadata>
void visit(Bytes& bytes, Metadata& metadata) {
  bytes.value(metadata.manifest.split);
  bytes.rows(metadata.manifest.set_identity);
  bytes.rows(metadata.manifest.set_digest);
  auto shard_count = std::uint64_t{metadata.shards.size()};
  bytes.value(shard_count);
  if constexpr (Bytes::kReads) {
    metadata.manifest.shards.resize(shard_count);
    metadata.shards.resize(shard_count);
  }
  for (std::size_t i = 0; i < shard_count; ++i) {
    auto& summary = metadata.manifest.shards[i];
    bytes.rows(summary.file_name);
    bytes.value(summary.file_bytes);
    auto& shard = metadata.shards[i];
    bytes.value(shard.header.index);
    bytes.value(shard.jpeg_data_offset);
    bytes.value(shard.restart_data_offset);
    visit_datasets(shard.data, [&bytes](const char*, auto& rows) { bytes.rows(rows); });
  }
}

}  // namespace

Manifest read_set_manifest(const fs::path& folder, Split split) {
  validate_folder(folder, split);
  const auto path = folder / manifest_file_name(split);
  auto manifest = read_manifest(path);
  SSD_VALIDATE(manifest.split == split && !manifest.shards.empty(), "manifest '{}': not one of {} shards",
               path.string(), split_name(split));
  return manifest;
}

SetMetadata read_set_metadata(const fs::path& folder, Split split) {
  SetMetadata metadata{read_set_manifest(folder, split), {}};
  for (std::size_t i = 0; i < metadata.manifest.shards.size(); ++i) {
    auto& shard = metadata.shards.emplace_back(read_listed_shard(folder, metadata.manifest, i));
    shard.data.restart_offsets = std::vector<std::uint32_t>();  // = {} would keep the memory
  }
  return metadata;
}

std::vector<std::byte> to_bytes(const SetMetadata& metadata) {
  ByteWriter writer;
  visit(writer, metadata);
  return writer.take();
}

SetMetadata set_metadata_of(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  SetMetadata metadata;
  visit(reader, metadata);
  SSD_EXPECT(reader.is_at_end());
  return metadata;
}

}  // namespace ssd
