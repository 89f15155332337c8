#include "checkpoint/file_names.hpp"

#include <algorithm>
#include <charconv>

#include "core/error.hpp"

namespace ssd {
namespace {

constexpr std::string_view kPrefix = "epoch_";
constexpr std::string_view kSuffix = ".pt";

}  // namespace

std::string checkpoint_file_name(std::int64_t epoch) {
  SSD_EXPECT(epoch >= 0);
  return fmt::format("{}{}{}", kPrefix, epoch, kSuffix);
}

std::optional<std::int64_t> epoch_of_checkpoint_file(std::string_view file_name) {
  if (!file_name.starts_with(kPrefix) || !file_name.ends_with(kSuffix)) return std::nullopt;
  if (file_name.size() <= kPrefix.size() + kSuffix.size()) return std::nullopt;
  std::int64_t epoch = -1;
  const auto* first = file_name.data() + kPrefix.size();
  const auto* last = file_name.data() + file_name.size() - kSuffix.size();
  if (std::from_chars(first, last, epoch).ec != std::errc() || epoch < 0) return std::nullopt;
  if (checkpoint_file_name(epoch) != file_name) return std::nullopt;
  return epoch;
}

std::vector<CheckpointFile> list_checkpoint_files(const std::filesystem::path& folder) {
  std::vector<CheckpointFile> files;
  std::error_code failure;
  std::filesystem::directory_iterator entries(folder, failure);
  if (failure == std::errc::no_such_file_or_directory) return files;
  for (; !failure && entries != std::filesystem::directory_iterator(); entries.increment(failure)) {
    const auto epoch = epoch_of_checkpoint_file(entries->path().filename().string());
    if (epoch) files.push_back({*epoch, entries->path()});
  }
  if (failure) throw system_error("list folder", folder, failure.value());
  std::ranges::sort(files, {}, &CheckpointFile::epoch);
  return files;
}

}  // namespace ssd
