#include "preprocess/pack_options.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace ssd {

std::string PackOptions::text() const {
  nlohmann::ordered_json json;
  json["shard_bytes"] = shard_bytes;
  json["skip_bad"] = skip_bad;
  json["keep_original_jpeg"] = keep_original_jpeg;
  if (shuffle_seed) json["shuffle_seed"] = *shuffle_seed;
  if (limit) json["limit"] = *limit;
  return json.dump();
}

PackOptions PackOptions::parse(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    PackOptions options;
    options.shard_bytes = json.value("shard_bytes", options.shard_bytes);
    options.skip_bad = json.value("skip_bad", false);
    options.keep_original_jpeg = json.value("keep_original_jpeg", false);
    if (json.contains("shuffle_seed")) options.shuffle_seed = json.at("shuffle_seed").get<std::uint64_t>();
    if (json.contains("limit")) options.limit = json.at("limit").get<std::uint64_t>();
    return options;
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("options '{}': {}", text, error.what()));
  }
}

}  // namespace ssd
