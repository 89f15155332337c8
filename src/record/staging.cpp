#include "record/staging.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "core/atomic_file.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/phase.hpp"
#include "core/read_text_file.hpp"
#include "core/stopwatch.hpp"
#include "record/file_names.hpp"
#include "record/listed_shard.hpp"
#include "record/manifest.hpp"
#include "record/shard_bytes.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = std::size_t{8} << 20;
constexpr std::chrono::milliseconds kLockPause{500};
constexpr double kSecondsBetweenLines = 10;

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags) : value_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (value_ < 0) throw system_error("open", path, errno);
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

struct SetToStage {
  Manifest manifest;
  std::string text;  // of the manifest's file
};

std::vector<SetToStage> sets_in(const fs::path& source) {
  std::vector<SetToStage> sets;
  for (const Split split : {Split::train, Split::val}) {
    const auto path = source / manifest_file_name(split);
    if (!fs::exists(path)) continue;
    auto text = read_text_file(path);
    auto manifest = parse_manifest(text, path);
    sets.push_back({std::move(manifest), std::move(text)});
  }
  return sets;
}

std::string folder_name(const std::vector<SetToStage>& sets) {
  Digester digester;
  for (const auto& set : sets) digester.update(std::as_bytes(std::span(set.manifest.set_digest)));
  return "shards-" + digester.digest().hex().substr(0, 16);
}

bool has_size(const fs::path& path, std::uint64_t bytes) {
  std::error_code error;
  return fs::file_size(path, error) == bytes && !error;
}

bool is_staged(const SetToStage& set, const fs::path& folder) {
  const auto manifest = folder / manifest_file_name(set.manifest.split);
  return has_size(manifest, set.text.size()) && read_text_file(manifest) == set.text &&
         std::ranges::all_of(set.manifest.shards, [&](const ShardSummary& shard) {
           return has_size(folder / shard.file_name, shard.file_bytes);
         });
}

void write_all(int descriptor, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const auto written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error("write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

// Calls back with the file's bytes, in pieces.
template <class Callback>
void read_pieces(const fs::path& path, std::uint64_t file_bytes, const Callback& callback) {
  const ShardBytes file(path);
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, file_bytes)));
  for (std::uint64_t at = 0; at < file_bytes; at += buffer.size()) {
    const auto piece = std::span(buffer).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), file_bytes - at)));
    file.read(at, piece);
    callback(piece);
    note_progress();
  }
}

// The digest of what was read.
Digest copy_bytes(const fs::path& from, const fs::path& to, std::uint64_t file_bytes) {
  const Descriptor out(to, O_WRONLY | O_CREAT | O_TRUNC);
  Digester digester;
  read_pieces(from, file_bytes, [&](std::span<const std::byte> piece) {
    digester.update(piece);
    write_all(out.get(), piece, to);
  });
  if (::fsync(out.get()) != 0) throw system_error("sync", to, errno);
  // So that it is read back from the disk, and not from memory.
  ::posix_fadvise(out.get(), 0, 0, POSIX_FADV_DONTNEED);
  return digester.digest();
}

void copy_shard(const fs::path& source, const fs::path& folder, const Manifest& manifest, std::size_t index) {
  const auto& shard = manifest.shards[index];
  const auto from = source / shard.file_name;
  const auto to = folder / shard.file_name;
  SSD_VALIDATE(parse_shard_file_name(shard.file_name), "manifest in '{}': '{}' is not the name of a shard",
               source.string(), shard.file_name);
  const auto temporary = temporary_path_for(to);
  read_listed_shard(source, manifest, index);  // for what it finds wrong
  const auto digest = copy_bytes(from, temporary, shard.file_bytes);
  Digester digester;
  read_pieces(temporary, shard.file_bytes, [&](std::span<const std::byte> piece) { digester.update(piece); });
  SSD_VALIDATE(digester.digest() == digest,
               "shard '{}': read back from '{}', the copy differs; is that disk healthy?", from.string(),
               folder.string());
  rename_durably(temporary, to);
}

void remove_temporary_files(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder))
    if (is_temporary_name(entry.path().filename().string())) fs::remove(entry.path(), ignored);
}

// Held until the descriptor is closed, or the process ends in whatever way.
void lock(const Descriptor& file, const fs::path& folder) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return;
  log_warning("'{}': another job is copying the same shards there; waiting for it", folder.string());
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw system_error("lock", folder, errno);
    std::this_thread::sleep_for(kLockPause);
    note_progress();  // the other job has a watchdog of its own
  }
}

void expect_space(const fs::path& folder, std::uint64_t bytes, std::size_t files) {
  std::error_code error;
  const auto space = fs::space(folder, error);
  SSD_VALIDATE(!error, "'{}': {}", folder.string(), error.message());
  SSD_VALIDATE(space.available >= bytes,
               "stage folder '{}': {:.1f} GB needed for {} shards, {:.1f} GB free; free some, choose another "
               "folder, or train from the shared shards",
               folder.string(), static_cast<double>(bytes) / 1e9, files,
               static_cast<double>(space.available) / 1e9);
}

}  // namespace

StagedShards stage_shards(const fs::path& source, const fs::path& stage_dir) {
  const auto sets = sets_in(source);
  if (sets.empty()) return {source};
  StagedShards staged{stage_dir / folder_name(sets)};
  const auto& folder = staged.folder;
  const auto all_staged = [&] {
    return std::ranges::all_of(sets, [&](const SetToStage& set) { return is_staged(set, folder); });
  };
  if (all_staged()) return staged;

  std::error_code error;
  fs::create_directories(folder, error);
  SSD_VALIDATE(!error, "stage folder '{}': cannot be made: {}", folder.string(), error.message());
  const Descriptor lock_file(folder / ".lock", O_RDONLY | O_CREAT);
  lock(lock_file, folder);
  if (all_staged()) return staged;  // by the one that held the lock
  remove_temporary_files(folder);

  std::vector<std::pair<const Manifest*, std::size_t>> missing;
  for (const auto& set : sets)
    for (std::size_t index = 0; index < set.manifest.shards.size(); ++index) {
      const auto& shard = set.manifest.shards[index];
      if (has_size(folder / shard.file_name, shard.file_bytes)) continue;
      missing.emplace_back(&set.manifest, index);
      staged.copied_bytes += shard.file_bytes;
    }
  staged.copied_files = missing.size();
  expect_space(folder, staged.copied_bytes, missing.size());
  log_info("copying {} shards, {:.2f} GB, from '{}' to '{}'", missing.size(),
           static_cast<double>(staged.copied_bytes) / 1e9, source.string(), folder.string());
  const Stopwatch stopwatch;
  Stopwatch since_line;
  std::uint64_t copied_bytes = 0;
  try {
    for (const auto& [manifest, index] : missing) {
      copy_shard(source, folder, *manifest, index);
      copied_bytes += manifest->shards[index].file_bytes;
      if (since_line.seconds() < kSecondsBetweenLines) continue;
      const double rate = static_cast<double>(copied_bytes) / stopwatch.seconds();
      log_info("copied {:.2f} of {:.2f} GB, {:.0f} MB/s, {:.0f} s left",
               static_cast<double>(copied_bytes) / 1e9, static_cast<double>(staged.copied_bytes) / 1e9,
               rate / 1e6, static_cast<double>(staged.copied_bytes - copied_bytes) / rate);
      since_line = {};
    }
  } catch (...) {
    remove_temporary_files(folder);
    throw;
  }
  for (const auto& set : sets)
    write_file_atomically(folder / manifest_file_name(set.manifest.split), set.text);
  log_info("copied and verified in {:.1f} s", stopwatch.seconds());
  return staged;
}

}  // namespace ssd
