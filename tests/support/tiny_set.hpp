// Small sets of shards for tests: pictures made here, encoded, and written by the shard writer.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "image/jpeg.hpp"
#include "image/jpeg_transcode.hpp"
#include "record/manifest.hpp"
#include "record/set_folder.hpp"
#include "record/shard_writer.hpp"
#include "support/encode_jpeg.hpp"

namespace ssd::test {

struct TinyRecord {
  RecordToWrite record;
  std::vector<std::byte> jpeg;  // empty: a bad record
};

// The record with its JPEG encoded anew as ssd_preprocess does it, with an index of restart segments.
inline TinyRecord with_restarts(TinyRecord tiny) {
  RgbImage pixels;
  const int warnings = JpegDecoder().decode(tiny.jpeg, pixels);
  TranscodedJpeg anew = JpegTranscoder().transcode(tiny.jpeg, pixels, warnings);
  if (anew.outcome != Transcoding::done) throw std::runtime_error("a JPEG that cannot be encoded anew");
  tiny.jpeg = std::move(anew.bytes);
  tiny.record.restart_interval = anew.restart_interval;
  tiny.record.restart_offsets = std::move(anew.restart_offsets);
  return tiny;
}

// An upright picture that is black but for one box of one colour, with the annotation of that box.
inline TinyRecord record_with_box(std::int64_t image_id, int width, int height, const BoxXywh& box,
                                  std::array<std::uint8_t, 3> color = {255, 255, 255}) {
  RgbImage image{width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height * 3))};
  for (int y = static_cast<int>(box[1]); y < static_cast<int>(box[1] + box[3]); ++y) {
    for (int x = static_cast<int>(box[0]); x < static_cast<int>(box[0] + box[2]); ++x) {
      for (std::size_t c = 0; c < 3; ++c)
        image.pixels[static_cast<std::size_t>(y * width + x) * 3 + c] = color[c];
    }
  }
  TinyRecord tiny;
  tiny.record.image = {ImageId(image_id), std::to_string(image_id) + ".jpg", width, height};
  tiny.record.stored_width = width;
  tiny.record.stored_height = height;
  const Annotation annotation{image_id * 10, ImageId(image_id), CategoryId(7), box, box[2] * box[3], false};
  tiny.record.annotations.push_back({annotation, 0, true});
  tiny.jpeg = encode_jpeg(image);
  return tiny;
}

inline const std::vector<Category> kTinyCategories = {{CategoryId(7), "seven"}, {CategoryId(3), "three"}};

// Writes the records as shards of records_per_shard in the order given.
inline void write_tiny_set(const std::filesystem::path& folder, Split split, std::vector<TinyRecord> records,
                           std::size_t records_per_shard = 4) {
  const std::string identity(32, 'a');
  SetFolder set(folder, split);
  Manifest manifest{split, identity, "", {}};
  const std::size_t count = (records.size() + records_per_shard - 1) / records_per_shard;
  std::uint64_t annotation_order = 0;
  for (std::size_t shard = 0; shard < count; ++shard) {
    const auto index = static_cast<std::uint32_t>(shard);
    ShardWriter writer({split, index, static_cast<std::uint32_t>(count), identity, "{}"}, kTinyCategories);
    for (std::size_t i = shard * records_per_shard;
         i < std::min(records.size(), (shard + 1) * records_per_shard); ++i) {
      records[i].record.json_order = i;
      for (auto& annotation : records[i].record.annotations) annotation.json_order = annotation_order++;
      if (records[i].jpeg.empty()) records[i].record.flags |= kImageBad;
      writer.add(records[i].record, records[i].jpeg);
    }
    manifest.shards.push_back(writer.close(set.temporary_path(index, static_cast<std::uint32_t>(count))));
  }
  manifest.set_digest = set_digest_of(manifest).hex();
  set.publish(manifest.shards, manifest_text(manifest, nlohmann::ordered_json::object()));
}

}  // namespace ssd::test
