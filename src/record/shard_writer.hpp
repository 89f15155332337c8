// Collects the records of one shard in memory and writes them as one file. Not thread safe; HDF5 is called in
// close() alone. Holds the JPEG data of its shard in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "coco/annotations.hpp"
#include "core/digest.hpp"
#include "record/shard_data.hpp"

namespace ssd {

struct AnnotationToWrite {
  Annotation annotation;
  std::uint64_t json_order = 0;  // place in the JSON's list
  bool is_trainable = true;
};

struct RecordToWrite {
  ImageEntry image;              // width, height: of the upright raster
  std::uint64_t json_order = 0;  // place in the JSON's list
  int stored_width = 0;          // of the raster in the JPEG
  int stored_height = 0;
  int orientation = 1;         // to apply to the stored raster
  int source_orientation = 1;  // what EXIF said
  std::uint32_t flags = 0;     // kImage...
  std::uint32_t decode_warnings = 0;
  std::uint64_t source_bytes = 0;
  Digest source_digest;
  std::uint32_t restart_interval = 0;          // MCUs of a restart segment; 0: no index
  std::vector<std::uint32_t> restart_offsets;  // of each segment's first byte in the JPEG
  std::vector<AnnotationToWrite> annotations;
};

// What the manifest says of a shard.
struct ShardSummary {
  std::string file_name;
  std::uint64_t file_bytes = 0;
  std::uint64_t image_count = 0;
  std::uint64_t annotation_count = 0;
  std::string content_digest;  // 32 hex digits
};

class ShardWriter {
 public:
  // jpeg_bytes: about what will be added; memory for it is taken at once.
  ShardWriter(ShardHeader header, const std::vector<Category>& categories, std::uint64_t jpeg_bytes = 0);

  // jpeg is empty if and only if the record is bad.
  void add(const RecordToWrite& record, std::span<const std::byte> jpeg);

  // Writes the file at path (a name for waiting: see SetFolder): under a temporary name, synced, renamed. The
  // writer is empty afterwards. Throws Error; then nothing is left of the file.
  ShardSummary close(const std::filesystem::path& path);

 private:
  ShardHeader header_;
  ShardData data_;
  std::vector<std::byte> jpeg_data_;
};

}  // namespace ssd
