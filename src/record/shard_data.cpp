#include "record/shard_data.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>

#include "core/error.hpp"

namespace ssd {
namespace {

void update(Digester& digester, std::string_view text) {
  digester.update(std::as_bytes(std::span(text)));
}

void update(Digester& digester, std::uint64_t number) {
  digester.update(std::as_bytes(std::span(&number, 1)));
}

// Offsets of count rows: 0, ..., total, never falling.
void validate_offsets(const char* name, const std::vector<std::uint64_t>& offsets, std::size_t count,
                      std::uint64_t total) {
  SSD_VALIDATE(offsets.size() == count + 1 && offsets.front() == 0 && offsets.back() == total &&
                   std::is_sorted(offsets.begin(), offsets.end()),
               "dataset '{}' does not fit the others", name);
}

void validate_image(const ShardData& data, std::size_t i, std::uint64_t jpeg_data_bytes) {
  const bool is_bad = (data.image_flags[i] & kImageBad) != 0;
  const auto id = data.image_ids[i];
  SSD_VALIDATE(
      data.jpeg_offsets[i] <= jpeg_data_bytes && data.jpeg_bytes[i] <= jpeg_data_bytes - data.jpeg_offsets[i],
      "image {}: its picture lies outside the data", id);
  SSD_VALIDATE(is_bad == (data.jpeg_bytes[i] == 0), "image {}: no picture", id);
  SSD_VALIDATE(is_bad || (data.widths[i] > 0 && data.heights[i] > 0), "image {}: a size of {} x {}", id,
               data.widths[i], data.heights[i]);
  SSD_VALIDATE(data.orientations[i] >= 1 && data.orientations[i] <= 8, "image {}: orientation {}", id,
               data.orientations[i]);
}

// first_restarts must have been checked.
void validate_restarts(const ShardData& data, std::size_t i) {
  const auto first = data.restart_offsets.begin() + static_cast<std::ptrdiff_t>(data.first_restarts[i]);
  const auto last = data.restart_offsets.begin() + static_cast<std::ptrdiff_t>(data.first_restarts[i + 1]);
  SSD_VALIDATE((first == last) == (data.restart_intervals[i] == 0) &&
                   std::adjacent_find(first, last, std::greater_equal<>()) == last &&
                   (first == last || *(last - 1) < data.jpeg_bytes[i]),
               "image {}: its restart segments do not fit its picture", data.image_ids[i]);
}

}  // namespace

void StringTable::add(std::string_view text) {
  bytes.insert(bytes.end(), text.begin(), text.end());
  offsets.push_back(bytes.size());
}

std::string StringTable::at(std::size_t i) const {
  const auto* start = reinterpret_cast<const char*>(bytes.data());
  return {start + offsets[i], start + offsets[i + 1]};
}

Digest content_digest(const ShardHeader& header, const ShardData& data) {
  Digester digester;
  const auto update_text = [&](std::string_view text) {
    update(digester, text);
    update(digester, std::string_view("\0", 1));
  };
  update_text(split_name(header.split));
  update(digester, std::uint64_t{header.index});
  update(digester, std::uint64_t{header.count});
  update(digester, header.set_identity);
  visit_datasets(data, [&](const char* name, const auto& rows) {
    const auto bytes = std::as_bytes(std::span(rows));
    update_text(name);
    update(digester, std::uint64_t{bytes.size()});
    digester.update(bytes);
  });
  return digester.digest();
}

void validate(const ShardData& data, std::uint64_t jpeg_data_bytes) {
  const auto image_count = data.image_ids.size();
  const auto annotation_count = data.annotation_ids.size();
  visit_datasets(data, [&](std::string_view name, const auto& rows) {
    const bool is_table = name.find("offset") != name.npos || name.find("name") != name.npos ||
                          name.find("first_") != name.npos;
    if (is_table && name != "images/jpeg_offset") return;
    if (name.starts_with("images/"))
      SSD_VALIDATE(rows.size() == image_count, "dataset '{}' has {} rows, not {}", name, rows.size(),
                   image_count);
    if (name.starts_with("annotations/"))
      SSD_VALIDATE(rows.size() == annotation_count, "dataset '{}' has {} rows, not {}", name, rows.size(),
                   annotation_count);
  });
  validate_offsets("categories/name_offset", data.category_names.offsets, data.category_ids.size(),
                   data.category_names.bytes.size());
  validate_offsets("images/file_name_offset", data.file_names.offsets, image_count,
                   data.file_names.bytes.size());
  validate_offsets("images/first_annotation", data.first_annotations, image_count, annotation_count);
  validate_offsets("images/first_restart", data.first_restarts, image_count, data.restart_offsets.size());
  for (std::size_t i = 0; i < image_count; ++i) {
    validate_image(data, i, jpeg_data_bytes);
    validate_restarts(data, i);
  }
}

}  // namespace ssd
