// The options of ssd_preprocess that change what a set holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ssd {

struct PackOptions {
  std::uint64_t shard_bytes = std::uint64_t{256} << 20;  // of the pictures' files
  bool skip_bad = false;
  bool keep_original_jpeg = false;
  std::optional<std::uint64_t> shuffle_seed;  // nothing: the order of the annotation file
  std::optional<std::uint64_t> limit;         // images; the first ones of the order

  std::string text() const;  // JSON: the `options` of shards and manifest
  // Of text(); what it does not name has its default.
  static PackOptions parse(const std::string& text);
};

}  // namespace ssd
