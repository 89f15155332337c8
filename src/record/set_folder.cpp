#include "record/set_folder.hpp"

#include <unistd.h>

#include <cerrno>

#include "core/atomic_file.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "record/file_names.hpp"
#include "record/manifest.hpp"
#include "record/shard_set.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

// Whether a temporary file is one of this split: ".train-00000-of-00004.h5.tmp.host.17" or that of its
// manifest.
bool is_temporary_of(Split split, const std::string& name) {
  return is_temporary_name(name) && (name.starts_with(fmt::format(".{}-", split_name(split))) ||
                                     name.starts_with("." + manifest_file_name(split)));
}

bool is_shard_of(Split split, const std::string& name) {
  const auto shard = parse_shard_file_name(name);
  return shard && shard->split == split;
}

std::vector<std::string> file_names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  return names;
}

const fs::path& writable_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  SSD_VALIDATE(!error && fs::is_directory(folder), "cannot make folder '{}': {}", folder.string(),
               error ? error.message() : "a file of this name exists");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) throw system_error("write into", folder, errno);
  return folder;
}

void remove_file(const fs::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw system_error("remove", path, errno);
}

}  // namespace

SetFolder::SetFolder(fs::path folder, Split split)
    : folder_(std::move(folder)),
      split_(split),
      lock_(writable_folder(folder_) / lock_file_name(split), fmt::format("{} shards", split_name(split))) {}

ExistingSet SetFolder::existing(const std::string& set_identity) const {
  const auto path = folder_ / manifest_file_name(split_);
  if (!fs::exists(path)) return ExistingSet::none;
  try {
    if (read_manifest(path).set_identity != set_identity) return ExistingSet::other;
    ShardSet::open(folder_, split_);
    return ExistingSet::same;
  } catch (const Error& error) {
    log_warning("{}", error.what());
    return ExistingSet::other;
  }
}

std::size_t SetFolder::clean(std::uint32_t shard_count) {
  const bool is_complete = fs::exists(folder_ / manifest_file_name(split_));
  std::size_t count = 0;
  for (const auto& name : file_names_in(folder_)) {
    const auto waiting = parse_waiting_file_name(name);
    const auto shard = waiting ? waiting : parse_shard_file_name(name);
    const bool is_ours = shard && shard->split == split_;
    if (!is_temporary_of(split_, name) && !is_ours) continue;
    if (is_ours && !waiting && is_complete) continue;
    if (is_ours && shard->count == shard_count) {
      if (!waiting) rename_durably(folder_ / name, temporary_path(shard->index, shard->count));
      continue;
    }
    remove_file(folder_ / name);
    ++count;
  }
  return count;
}

fs::path SetFolder::temporary_path(std::uint32_t index, std::uint32_t count) const {
  return folder_ / waiting_file_name({split_, index, count});
}

void SetFolder::publish(const std::vector<ShardSummary>& shards, const std::string& manifest_text) {
  remove_published_set();
  const auto count = static_cast<std::uint32_t>(shards.size());
  for (std::uint32_t index = 0; index < count; ++index)
    rename_durably(temporary_path(index, count), folder_ / shards[index].file_name);
  write_file_atomically(folder_ / manifest_file_name(split_), manifest_text);
}

// The manifest goes first, so that no moment shows it with shards that are not its own.
void SetFolder::remove_published_set() {
  remove_file(folder_ / manifest_file_name(split_));
  sync_path(folder_);
  for (const auto& name : file_names_in(folder_))
    if (is_shard_of(split_, name)) remove_file(folder_ / name);
}

}  // namespace ssd
