#include "checkpoint/checkpoint_saver.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/file_names.hpp"
#include "core/atomic_file.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/stopwatch.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIterationPrefix = "iteration_";
constexpr std::string_view kSuffix = ".pt";

bool is_iteration_file(std::string_view name) {
  if (!name.starts_with(kIterationPrefix) || !name.ends_with(kSuffix)) return false;
  const auto digits =
      name.substr(kIterationPrefix.size(), name.size() - kIterationPrefix.size() - kSuffix.size());
  return !digits.empty() &&
         std::all_of(digits.begin(), digits.end(), [](char c) { return '0' <= c && c <= '9'; });
}

struct SavedFile {
  fs::path path;
  fs::file_time_type time;
};

// Checkpoints of both kinds, newest first. One writer makes them, so their times are of one clock.
std::vector<SavedFile> saved_files(const fs::path& folder) {
  std::vector<SavedFile> files;
  std::error_code failure;
  fs::directory_iterator entries(folder, failure);
  for (; !failure && entries != fs::directory_iterator(); entries.increment(failure)) {
    const auto name = entries->path().filename().string();
    if (!epoch_of_checkpoint_file(name) && !is_iteration_file(name)) continue;
    std::error_code gone;
    const auto time = fs::last_write_time(entries->path(), gone);
    if (!gone) files.push_back({entries->path(), time});
  }
  if (failure && failure != std::errc::no_such_file_or_directory)
    throw system_error("list folder", folder, failure.value());
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.time > b.time; });
  return files;
}

}  // namespace

std::string iteration_checkpoint_name(std::int64_t iteration) {
  return fmt::format("{}{}{}", kIterationPrefix, iteration, kSuffix);
}

CheckpointSaver::CheckpointSaver(SaverOptions options)
    : options_(std::move(options)), thread_([this] { run(); }) {}

CheckpointSaver::~CheckpointSaver() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CheckpointSaver::start(const std::string& name, std::function<Value()> make) {
  wait();
  {
    const std::lock_guard lock(mutex_);
    job_ = Job{name, std::move(make)};
  }
  changed_.notify_all();
}

bool CheckpointSaver::is_busy() const {
  const std::lock_guard lock(mutex_);
  return job_.has_value();
}

fs::path CheckpointSaver::last_written() const {
  const std::lock_guard lock(mutex_);
  return last_written_;
}

bool CheckpointSaver::wait() {
  std::unique_lock lock(mutex_);
  is_hurried_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !job_.has_value(); });
  is_hurried_ = false;
  return has_succeeded_;
}

void CheckpointSaver::run() {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_stopping_ || job_.has_value(); });
      if (!job_) return;
      job = *job_;
    }
    const bool has_succeeded = write(job);
    {
      const std::lock_guard lock(mutex_);
      has_succeeded_ = has_succeeded;
      if (has_succeeded) last_written_ = options_.folder / job.name;
      job_.reset();
    }
    changed_.notify_all();
  }
}

bool CheckpointSaver::write(const Job& job) {
  const auto path = options_.folder / job.name;
  const Stopwatch time;
  Value checkpoint;
  try {
    checkpoint = job.make();
  } catch (const std::exception& error) {
    log_warning("checkpoint '{}' is not written: {}", path.string(), error.what());
    return false;
  }
  double pause_s = options_.seconds_between_tries;
  for (int attempt = 1;; ++attempt, pause_s *= 2) {
    try {
      fs::create_directories(options_.folder);
      write_checkpoint_file(path, checkpoint);
      write_file_atomically(options_.folder / kLatestFileName, job.name + "\n");
      log_info("saved '{}' in {:.2f} s", path.string(), time.seconds());
      remove_older(job.name);
      return true;
    } catch (const std::exception& error) {
      const bool is_last = attempt >= options_.tries;
      log_warning("checkpoint '{}' is not written: {}; {}", path.string(), error.what(),
                  is_last ? "given up, older files stay" : "it is tried again");
      if (is_last || !pause(pause_s)) return false;
    }
  }
}

// False where the saver is being destroyed. Somebody who waits is not kept for longer than a moment.
bool CheckpointSaver::pause(double seconds) {
  std::unique_lock lock(mutex_);
  constexpr double kHurriedSeconds = .2;
  const bool was_hurried = is_hurried_;
  changed_.wait_for(lock, std::chrono::duration<double>(was_hurried ? kHurriedSeconds : seconds),
                    [&] { return is_stopping_ || (is_hurried_ && !was_hurried); });
  return !is_stopping_;
}

void CheckpointSaver::remove_older(const std::string& newest) {
  int kept = 1;  // the newest, whatever its time says: clocks are set back
  for (const auto& [path, time] : saved_files(options_.folder)) {
    const auto name = path.filename().string();
    if (name == newest) continue;
    if (!is_iteration_file(name) && (options_.keep == 0 || ++kept <= options_.keep)) continue;
    std::error_code failure;
    if (!fs::remove(path, failure) && failure)
      log_warning("cannot remove '{}': {}", path.string(), failure.message());
  }
}

std::optional<fs::path> find_whole_checkpoint(const fs::path& folder) {
  std::vector<fs::path> candidates;
  std::string latest;
  std::ifstream stream(folder / kLatestFileName);
  if (std::getline(stream, latest) && (epoch_of_checkpoint_file(latest) || is_iteration_file(latest))) {
    candidates.push_back(folder / latest);
  }
  for (const auto& [path, time] : saved_files(folder)) {
    if (std::find(candidates.begin(), candidates.end(), path) == candidates.end()) candidates.push_back(path);
  }
  std::string last_problem;
  for (const auto& path : candidates) {
    try {
      read_checkpoint_file(path).at("model");
      return path;
    } catch (const Error& error) {
      last_problem = error.what();
      log_warning("{}; looking for an older one", last_problem);
    }
  }
  SSD_VALIDATE(candidates.empty(), "--checkpoint auto: of {} checkpoints in '{}' none is whole ({})",
               candidates.size(), folder.string(), last_problem);
  return std::nullopt;
}

}  // namespace ssd
