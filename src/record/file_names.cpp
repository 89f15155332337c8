#include "record/file_names.hpp"

#include <charconv>

#include "core/error.hpp"

namespace ssd {
namespace {

constexpr std::size_t kDigits = 5;
constexpr std::string_view kWaitingMark = ".waiting";

std::optional<std::uint32_t> take_number(std::string_view& text) {
  if (text.size() < kDigits) return std::nullopt;
  std::uint32_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + kDigits, value);
  if (result.ec != std::errc{} || result.ptr != text.data() + kDigits) return std::nullopt;
  text.remove_prefix(kDigits);
  return value;
}

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

}  // namespace

const char* split_name(Split split) {
  return split == Split::train ? "train" : "val";
}

std::string shard_file_name(const ShardName& name) {
  SSD_EXPECT(name.index < name.count && name.count <= kMostShards);
  return fmt::format("{}-{:05}-of-{:05}.h5", split_name(name.split), name.index, name.count);
}

std::optional<ShardName> parse_shard_file_name(std::string_view file_name) {
  for (const auto split : {Split::train, Split::val}) {
    auto rest = file_name;
    if (!take(rest, split_name(split)) || !take(rest, "-")) continue;
    const auto index = take_number(rest);
    if (!index || !take(rest, "-of-")) return std::nullopt;
    const auto count = take_number(rest);
    if (!count || rest != ".h5" || *index >= *count) return std::nullopt;
    return ShardName{split, *index, *count};
  }
  return std::nullopt;
}

std::string waiting_file_name(const ShardName& name) {
  return fmt::format(".{}{}", shard_file_name(name), kWaitingMark);
}

std::optional<ShardName> parse_waiting_file_name(std::string_view file_name) {
  if (!take(file_name, ".") || !file_name.ends_with(kWaitingMark)) return std::nullopt;
  file_name.remove_suffix(kWaitingMark.size());
  return parse_shard_file_name(file_name);
}

std::string lock_file_name(Split split) {
  return fmt::format(".{}.lock", split_name(split));
}

std::string manifest_file_name(Split split) {
  return fmt::format("{}.manifest.json", split_name(split));
}

}  // namespace ssd
