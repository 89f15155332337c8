#include "record/set_folder.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

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

// The process that writes a temporary file, if it runs on this machine and still lives; else 0.
pid_t living_writer(const fs::path& folder, const std::string& name) {
  const auto dot = name.rfind('.');
  pid_t process = 0;
  std::from_chars(name.data() + dot + 1, name.data() + name.size(), process);
  const auto mark = name.find(".tmp.");
  const auto ours = temporary_path_for(folder / name.substr(1, mark - 1)).filename().string();
  const bool is_this_host = ours.substr(0, ours.rfind('.')) == name.substr(0, dot);
  if (process <= 0 || process == ::getpid() || !is_this_host) return 0;
  return ::kill(process, 0) == 0 || errno == EPERM ? process : 0;
}

std::vector<std::string> file_names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  return names;
}

void remove_file(const fs::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw system_error("remove", path, errno);
}

}  // namespace

SetFolder::SetFolder(fs::path folder, Split split) : folder_(std::move(folder)), split_(split) {
  std::error_code error;
  fs::create_directories(folder_, error);
  SSD_VALIDATE(!error && fs::is_directory(folder_), "cannot make folder '{}': {}", folder_.string(),
               error ? error.message() : "a file of this name exists");
  if (::access(folder_.c_str(), W_OK | X_OK) != 0) throw system_error("write into", folder_, errno);
  for (const auto& name : file_names_in(folder_)) {
    if (!is_temporary_of(split_, name)) continue;
    const auto process = living_writer(folder_, name);
    SSD_VALIDATE(process == 0, "'{}': process {} is writing {} shards there ('{}'); wait for it, or end it",
                 folder_.string(), process, split_name(split_), name);
  }
}

SetFolder::~SetFolder() {
  std::error_code ignored;
  for (const auto& path : temporaries_) fs::remove(path, ignored);
}

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

std::size_t SetFolder::remove_leftovers() {
  const bool is_complete = fs::exists(folder_ / manifest_file_name(split_));
  std::size_t count = 0;
  for (const auto& name : file_names_in(folder_)) {
    if (!is_temporary_of(split_, name) && (is_complete || !is_shard_of(split_, name))) continue;
    remove_file(folder_ / name);
    ++count;
  }
  return count;
}

fs::path SetFolder::temporary_path(std::uint32_t index, std::uint32_t count) {
  auto path = temporary_path_for(folder_ / shard_file_name({split_, index, count}));
  temporaries_.push_back(path);
  return path;
}

void SetFolder::publish(const std::vector<ShardSummary>& shards, const std::string& manifest_text) {
  remove_published_set();
  for (const auto& shard : shards) {
    const auto path = folder_ / shard.file_name;
    rename_durably(temporary_path_for(path), path);
  }
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
