#include "record/shard_writer.hpp"

#include <limits>
#include <system_error>
#include <utility>

#include "core/atomic_file.hpp"
#include "core/error.hpp"
#include "record/file_names.hpp"
#include "record/shard_file.hpp"

namespace ssd {

ShardWriter::ShardWriter(ShardHeader header, const std::vector<Category>& categories,
                         std::uint64_t jpeg_bytes)
    : header_(std::move(header)) {
  jpeg_data_.reserve(jpeg_bytes);
  for (const auto& category : categories) {
    data_.category_ids.push_back(category.id.value());
    data_.category_names.add(category.name);
  }
}

void ShardWriter::add(const RecordToWrite& record, std::span<const std::byte> jpeg) {
  SSD_EXPECT(jpeg.empty() == ((record.flags & kImageBad) != 0));
  SSD_EXPECT(jpeg.size() <= std::numeric_limits<std::uint32_t>::max());
  data_.image_ids.push_back(record.image.id.value());
  data_.image_json_orders.push_back(record.json_order);
  data_.file_names.add(record.image.file_name);
  data_.widths.push_back(record.image.width);
  data_.heights.push_back(record.image.height);
  data_.stored_widths.push_back(record.stored_width);
  data_.stored_heights.push_back(record.stored_height);
  data_.orientations.push_back(static_cast<std::uint8_t>(record.orientation));
  data_.source_orientations.push_back(static_cast<std::uint8_t>(record.source_orientation));
  data_.image_flags.push_back(record.flags);
  data_.decode_warnings.push_back(record.decode_warnings);
  data_.source_bytes.push_back(record.source_bytes);
  data_.source_digests.push_back({record.source_digest.high, record.source_digest.low});
  data_.jpeg_offsets.push_back(jpeg_data_.size());
  data_.jpeg_bytes.push_back(static_cast<std::uint32_t>(jpeg.size()));
  data_.jpeg_crc32s.push_back(crc32(jpeg));
  jpeg_data_.insert(jpeg_data_.end(), jpeg.begin(), jpeg.end());
  for (const auto& [annotation, json_order, is_trainable] : record.annotations) {
    data_.annotation_ids.push_back(annotation.id);
    data_.annotation_json_orders.push_back(json_order);
    data_.annotation_category_ids.push_back(annotation.category_id.value());
    data_.bboxes_xywh.push_back(annotation.bbox_xywh);
    data_.areas.push_back(annotation.area);
    data_.annotation_flags.push_back((annotation.is_crowd ? kAnnotationCrowd : 0) |
                                     (is_trainable ? kAnnotationTrainable : 0));
  }
  data_.first_annotations.push_back(data_.annotation_ids.size());
  data_.restart_intervals.push_back(record.restart_interval);
  data_.restart_offsets.insert(data_.restart_offsets.end(), record.restart_offsets.begin(),
                               record.restart_offsets.end());
  data_.first_restarts.push_back(data_.restart_offsets.size());
}

ShardSummary ShardWriter::close(const std::filesystem::path& path) {
  const auto data = std::exchange(data_, {});
  const auto jpeg_data = std::exchange(jpeg_data_, {});
  ShardSummary summary;
  summary.file_name = shard_file_name({header_.split, header_.index, header_.count});
  summary.image_count = data.image_ids.size();
  summary.annotation_count = data.annotation_ids.size();
  const auto temporary = temporary_path_for(path.parent_path() / summary.file_name);
  try {
    summary.content_digest = write_shard(temporary, header_, data, jpeg_data).hex();
    rename_durably(temporary, path);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw;
  }
  summary.file_bytes = std::filesystem::file_size(path);
  return summary;
}

}  // namespace ssd
