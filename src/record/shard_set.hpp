// A set of HDF5 shards as ssd_preprocess writes it, opened for reading: all metadata in memory, JPEG bytes
// read on demand. FORMAT.md describes the files. Local: no MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "coco/annotations.hpp"
#include "core/digest.hpp"
#include "core/ids.hpp"
#include "record/shard_bytes.hpp"
#include "record/split.hpp"

namespace ssd {

struct RecordAnnotation {
  std::int64_t id = 0;
  CategoryId category_id;
  Label label;          // place of the category in the set's list + 1
  BoxXywh bbox_xywh{};  // the doubles of the JSON, in pixels of the upright raster width x height
  double area = 0;
  bool is_crowd = false;
  bool is_trainable =
      true;  // false: a box of no size, or nothing of it inside the image; kept for evaluation
  std::uint64_t json_order = 0;  // place in the JSON's list; tells the last of two annotations with one id
};

struct Record {
  ImageId image_id;
  std::string file_name;
  int width = 0;  // pixels of the upright raster, the one that boxes are drawn on
  int height = 0;
  int orientation = 1;  // EXIF orientation to apply to the stored JPEG (1: none); decided when packing
  std::uint32_t decode_warnings = 0;
  bool is_bad = false;            // packed without a picture (--skip-bad): evaluated with no detections
  std::uint32_t shard = 0;        // place of the JPEG's bytes
  std::uint64_t byte_offset = 0;  // in the shard file
  std::uint32_t byte_count = 0;
  std::uint32_t crc32 = 0;                // of the JPEG's bytes
  std::uint32_t restart_interval = 0;     // MCUs of a restart segment of the JPEG; 0: no index
  std::uint32_t restart_count = 0;        // segments
  std::uint64_t restart_byte_offset = 0;  // of their index in the shard file
  std::size_t first_annotation = 0;       // into the set's annotations
  std::size_t annotation_count = 0;
};

struct SetMetadata;  // record/set_metadata.hpp

class ShardSet {
 public:
  // Reads the metadata of one split (read_set_metadata, with its errors) and opens its shards.
  static ShardSet open(const std::filesystem::path& folder, Split split);
  // Metadata that has been read, here or on another rank, of shards that lie in this folder. Throws Error
  // where one is missing or of another length; more than that of their content is not read.
  ShardSet(std::filesystem::path folder, SetMetadata metadata);

  const std::filesystem::path& folder() const { return folder_; }
  Split split() const { return split_; }
  const std::vector<Category>& categories() const { return categories_; }
  const std::vector<Record>& records() const { return records_; }
  std::span<const RecordAnnotation> annotations_of(const Record& record) const;
  // Identity of the set: equal for equal input and options.
  const Digest& digest() const { return digest_; }

  // The JPEG's bytes, in a buffer that is reused: it only grows, so that nothing is cleared before it is
  // read. Thread safe (pread; no HDF5 call). Verifies the CRC. Throws Error that names shard, record and
  // image.
  std::span<const std::byte> read_jpeg(const Record& record, std::vector<std::byte>& buffer) const;

  // Where each restart segment's entropy-coded data begins in the JPEG's bytes (image/jpeg_transcode.hpp says
  // what else holds); empty where the record has no index. The same threads and errors; the index is
  // not held in memory, since it would be larger than all else.
  void read_restarts(const Record& record, std::vector<std::uint32_t>& offsets) const;

 private:
  std::filesystem::path folder_;
  Split split_ = Split::train;
  std::vector<Category> categories_;
  std::vector<Record> records_;
  std::vector<RecordAnnotation> annotations_;
  Digest digest_;
  std::vector<ShardBytes> shards_;
};

}  // namespace ssd
