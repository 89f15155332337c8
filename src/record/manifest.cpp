#include "record/manifest.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/read_text_file.hpp"
#include "record/shard_data.hpp"

namespace ssd {
namespace {

constexpr const char* kFormatName = "ssd-shards";

Manifest parse(const nlohmann::json& json) {
  SSD_VALIDATE(json.is_object() && json.value("format", "") == kFormatName, "is not a manifest of shards");
  const auto version = json.at("format_version").get<std::uint32_t>();
  SSD_VALIDATE(version == kShardFormatVersion,
               "format version {} (this build reads {}); run ssd_preprocess again", version,
               kShardFormatVersion);
  Manifest manifest;
  const auto split = json.at("split").get<std::string>();
  SSD_VALIDATE(split == "train" || split == "val", "split '{}'", split);
  manifest.split = split == "train" ? Split::train : Split::val;
  manifest.set_identity = json.at("set_identity").get<std::string>();
  manifest.set_digest = json.at("set_digest").get<std::string>();
  for (const auto& entry : json.at("shards")) {
    ShardSummary shard;
    entry.at("file").get_to(shard.file_name);
    entry.at("file_bytes").get_to(shard.file_bytes);
    entry.at("image_count").get_to(shard.image_count);
    entry.at("annotation_count").get_to(shard.annotation_count);
    entry.at("content_digest").get_to(shard.content_digest);
    manifest.shards.push_back(std::move(shard));
  }
  SSD_VALIDATE(set_digest_of(manifest).hex() == manifest.set_digest,
               "damaged: its content does not match its digest; copy it again or run ssd_preprocess again");
  return manifest;
}

}  // namespace

Digest set_digest_of(const Manifest& manifest) {
  Digester digester;
  digester.update(std::as_bytes(std::span(manifest.set_identity)));
  for (const auto& shard : manifest.shards) digester.update(std::as_bytes(std::span(shard.content_digest)));
  return digester.digest();
}

std::string manifest_text(const Manifest& manifest, const nlohmann::ordered_json& more) {
  nlohmann::ordered_json json;
  json["format"] = kFormatName;
  json["format_version"] = kShardFormatVersion;
  json["split"] = split_name(manifest.split);
  json["set_identity"] = manifest.set_identity;
  json["set_digest"] = manifest.set_digest;
  auto& shards = json["shards"] = nlohmann::ordered_json::array();
  for (const auto& shard : manifest.shards) {
    nlohmann::ordered_json entry;
    entry["file"] = shard.file_name;
    entry["file_bytes"] = shard.file_bytes;
    entry["image_count"] = shard.image_count;
    entry["annotation_count"] = shard.annotation_count;
    entry["content_digest"] = shard.content_digest;
    shards.push_back(std::move(entry));
  }
  json.update(more);
  // Names that are not UTF-8 are shown with replacement characters; the shards hold them as they are.
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Manifest read_manifest(const std::filesystem::path& path) {
  return parse_manifest(read_text_file(path), path);
}

Manifest parse_manifest(const std::string& text, const std::filesystem::path& path) {
  try {
    return parse(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw Error(
        fmt::format("manifest '{}': damaged ({}); run ssd_preprocess again", path.string(), error.what()));
  } catch (const Error& error) {
    throw Error(fmt::format("manifest '{}': {}", path.string(), error.what()));
  }
}

}  // namespace ssd
