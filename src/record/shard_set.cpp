#include "record/shard_set.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "record/file_names.hpp"
#include "record/manifest.hpp"
#include "record/shard_file.hpp"

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

void validate_shard_size(const fs::path& path, const ShardSummary& expected) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  SSD_VALIDATE(!error, "shard '{}': {}; copy it again or run ssd_preprocess again", path.string(),
               error == std::errc::no_such_file_or_directory ? "missing" : error.message());
  SSD_VALIDATE(size == expected.file_bytes,
               "shard '{}': {} bytes, the manifest says {}: {}; copy it again or run ssd_preprocess again",
               path.string(), size, expected.file_bytes,
               size < expected.file_bytes ? "cut off" : "not the file of this set");
}

// The shard, if it is the one that the manifest speaks of.
ShardOnDisk read_shard_of(const Manifest& manifest, std::size_t index, const fs::path& path) {
  const auto& expected = manifest.shards[index];
  const auto count = manifest.shards.size();
  const auto place = parse_shard_file_name(expected.file_name);
  SSD_VALIDATE(place && *place == (ShardName{manifest.split, static_cast<std::uint32_t>(index),
                                             static_cast<std::uint32_t>(count)}),
               "shard '{}': not the name of {} shard {} of {}", path.string(), split_name(manifest.split),
               index, count);
  validate_shard_size(path, expected);
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
  return shard;
}

std::vector<Category> categories_of(const ShardData& data) {
  std::vector<Category> categories;
  for (std::size_t i = 0; i < data.category_ids.size(); ++i)
    categories.push_back({CategoryId(data.category_ids[i]), data.category_names.at(i)});
  return categories;
}

using Labels = std::unordered_map<CategoryId, Label>;

// The one way from a category to a label: place in the list + 1.
Labels labels_of(const std::vector<Category>& categories) {
  Labels labels;
  for (const auto& category : categories)
    labels.emplace(category.id, Label(static_cast<std::int32_t>(labels.size()) + 1));
  return labels;
}

Record record_of(const ShardOnDisk& shard, std::size_t i) {
  const auto& data = shard.data;
  Record record;
  record.image_id = ImageId(data.image_ids[i]);
  record.file_name = data.file_names.at(i);
  record.width = data.widths[i];
  record.height = data.heights[i];
  record.orientation = data.orientations[i];
  record.decode_warnings = data.decode_warnings[i];
  record.is_bad = (data.image_flags[i] & kImageBad) != 0;
  record.shard = shard.header.index;
  record.byte_offset = shard.jpeg_data_offset + data.jpeg_offsets[i];
  record.byte_count = data.jpeg_bytes[i];
  record.crc32 = data.jpeg_crc32s[i];
  record.restart_interval = data.restart_intervals[i];
  record.restart_count = static_cast<std::uint32_t>(data.first_restarts[i + 1] - data.first_restarts[i]);
  record.restart_byte_offset = shard.restart_data_offset + data.first_restarts[i] * sizeof(std::uint32_t);
  record.annotation_count = data.first_annotations[i + 1] - data.first_annotations[i];
  return record;
}

RecordAnnotation annotation_of(const ShardData& data, std::size_t i, const Labels& labels,
                               const fs::path& path) {
  RecordAnnotation annotation;
  annotation.id = data.annotation_ids[i];
  annotation.category_id = CategoryId(data.annotation_category_ids[i]);
  const auto label = labels.find(annotation.category_id);
  SSD_VALIDATE(label != labels.end(),
               "shard '{}': annotation {} has category {}, which the set does not list", path.string(),
               annotation.id, annotation.category_id.value());
  annotation.label = label->second;
  annotation.bbox_xywh = data.bboxes_xywh[i];
  annotation.area = data.areas[i];
  annotation.is_crowd = (data.annotation_flags[i] & kAnnotationCrowd) != 0;
  annotation.is_trainable = (data.annotation_flags[i] & kAnnotationTrainable) != 0;
  annotation.json_order = data.annotation_json_orders[i];
  return annotation;
}

bool equal(const std::vector<Category>& a, const std::vector<Category>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Category& x, const Category& y) { return x.id == y.id && x.name == y.name; });
}

Digest parse_digest(const std::string& hex) {
  SSD_VALIDATE(hex.size() == 32 && hex.find_first_not_of("0123456789abcdef") == hex.npos,
               "'{}' is not a digest", hex);
  return {std::stoull(hex.substr(0, 16), nullptr, 16), std::stoull(hex.substr(16), nullptr, 16)};
}

// A network file system answers ESTALE where another machine replaced the file: it has to be opened again.
constexpr int kOpenAttempts = 3;
constexpr auto kPauseBeforeAttempt = std::chrono::milliseconds(200);

int open_for_reading(const fs::path& path) {
  for (int attempt = 1;; ++attempt) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) return descriptor;
    if (errno != ESTALE || attempt == kOpenAttempts) throw system_error("open", path, errno);
    std::this_thread::sleep_for(kPauseBeforeAttempt);
  }
}

// Fills bytes from offset. Returns false on ESTALE.
bool read_at(int descriptor, std::uint64_t offset, std::span<std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const auto got = ::pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ESTALE) return false;
    if (got < 0) throw system_error("read", path, errno);
    SSD_VALIDATE(got > 0, "shard '{}': cut off at byte {} while it was in use", path.string(), offset);
    offset += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

void read_with_a_new_descriptor(std::uint64_t offset, std::span<std::byte> bytes, const fs::path& path) {
  log_warning("shard '{}': stale file handle; opening it again", path.string());
  for (int attempt = 1; attempt < kOpenAttempts; ++attempt) {
    std::this_thread::sleep_for(kPauseBeforeAttempt);
    const int descriptor = open_for_reading(path);
    bool is_read = false;
    try {
      is_read = read_at(descriptor, offset, bytes, path);
    } catch (...) {
      ::close(descriptor);
      throw;
    }
    ::close(descriptor);
    if (is_read) return;
  }
  throw system_error("read", path, ESTALE);
}

}  // namespace

ShardSet ShardSet::open(const fs::path& folder, Split split) {
  validate_folder(folder, split);
  const auto manifest_path = folder / manifest_file_name(split);
  const auto manifest = read_manifest(manifest_path);
  SSD_VALIDATE(manifest.split == split && !manifest.shards.empty(), "manifest '{}': not one of {} shards",
               manifest_path.string(), split_name(split));
  ShardSet set;
  set.folder_ = folder;
  set.split_ = split;
  set.digest_ = parse_digest(manifest.set_digest);
  Labels labels;
  for (std::size_t index = 0; index < manifest.shards.size(); ++index) {
    const auto path = folder / manifest.shards[index].file_name;
    const auto shard = read_shard_of(manifest, index, path);
    const auto categories = categories_of(shard.data);
    if (index == 0) {
      set.categories_ = categories;
      labels = labels_of(categories);
    }
    SSD_VALIDATE(equal(categories, set.categories_), "shard '{}': other categories than the first shard",
                 path.string());
    for (std::size_t i = 0; i < shard.data.image_ids.size(); ++i) {
      auto record = record_of(shard, i);
      record.first_annotation = set.annotations_.size() + shard.data.first_annotations[i];
      set.records_.push_back(std::move(record));
    }
    for (std::size_t i = 0; i < shard.data.annotation_ids.size(); ++i)
      set.annotations_.push_back(annotation_of(shard.data, i, labels, path));
    set.shard_paths_.push_back(path);
    set.shard_descriptors_.push_back(open_for_reading(path));
  }
  return set;
}

ShardSet::ShardSet(ShardSet&&) noexcept = default;

ShardSet& ShardSet::operator=(ShardSet&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(split_, other.split_);
  std::swap(categories_, other.categories_);
  std::swap(records_, other.records_);
  std::swap(annotations_, other.annotations_);
  std::swap(digest_, other.digest_);
  std::swap(shard_paths_, other.shard_paths_);
  std::swap(shard_descriptors_, other.shard_descriptors_);
  return *this;
}

ShardSet::~ShardSet() {
  for (const int descriptor : shard_descriptors_) ::close(descriptor);
}

std::span<const RecordAnnotation> ShardSet::annotations_of(const Record& record) const {
  return std::span(annotations_).subspan(record.first_annotation, record.annotation_count);
}

void ShardSet::read(const Record& record, std::uint64_t byte_offset, std::span<std::byte> bytes) const {
  SSD_EXPECT(!record.is_bad && record.shard < shard_paths_.size());
  const auto& path = shard_paths_[record.shard];
  if (!read_at(shard_descriptors_[record.shard], byte_offset, bytes, path))
    read_with_a_new_descriptor(byte_offset, bytes, path);
}

void ShardSet::read_jpeg(const Record& record, std::vector<std::byte>& bytes) const {
  bytes.resize(record.byte_count);
  read(record, record.byte_offset, bytes);
  SSD_VALIDATE(crc32(bytes) == record.crc32,
               "shard '{}': the picture of image {} ('{}') at byte {} is damaged (CRC-32); copy the shard "
               "again or run "
               "ssd_preprocess again",
               shard_paths_[record.shard].string(), record.image_id.value(), record.file_name,
               record.byte_offset);
}

void ShardSet::read_restarts(const Record& record, std::vector<std::uint32_t>& offsets) const {
  offsets.resize(record.restart_count);
  if (offsets.empty()) return;
  read(record, record.restart_byte_offset, std::as_writable_bytes(std::span(offsets)));
  // The index was right when the set was opened; a disk may return other bytes now.
  SSD_VALIDATE(std::adjacent_find(offsets.begin(), offsets.end(), std::greater_equal<>()) == offsets.end() &&
                   offsets.back() < record.byte_count,
               "shard '{}': the restart segments of image {} ('{}') are damaged; copy the shard again or run "
               "ssd_preprocess again",
               shard_paths_[record.shard].string(), record.image_id.value(), record.file_name);
}

}  // namespace ssd
