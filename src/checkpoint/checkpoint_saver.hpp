// Writes checkpoints beside training, one at a time: on a thread of its own, whole or not at all, again where
// the file system fails. For rank 0; no torch.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "checkpoint/value.hpp"

namespace ssd {

// The file in a folder of checkpoints that names the one written last, in one line.
inline constexpr const char* kLatestFileName = "latest";

struct SaverOptions {
  std::filesystem::path folder;
  // This many newest files stay; 0: every epoch's. Of the files between epochs (iteration_N.pt) none stays
  // that is older than a file written later.
  int keep = 0;
  int tries = 5;                     // of one save, while no newer one waits
  double seconds_between_tries = 2;  // doubled after each
};

class CheckpointSaver {
 public:
  explicit CheckpointSaver(SaverOptions options);
  ~CheckpointSaver();  // waits for the save under way; what is still to be tried again is given up
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Starts to write `make()` as folder/name; make runs on the saver's thread. Waits for a save under way.
  // Failures are warnings: training goes on, and older files stay.
  void start(const std::string& name, std::function<Value()> make);

  bool is_busy() const;
  // The file written last by this saver, as a path; empty before the first.
  std::filesystem::path last_written() const;
  // Until nothing is under way. False where the last save did not succeed.
  bool wait();

 private:
  struct Job {
    std::string name;
    std::function<Value()> make;
  };

  void run();
  bool write(const Job& job);
  void remove_older(const std::string& newest);
  bool pause(double seconds);

  SaverOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Job> job_;
  bool has_succeeded_ = true;  // the last save
  std::filesystem::path last_written_;
  bool is_hurried_ = false;  // somebody waits: no long pauses between tries
  bool is_stopping_ = false;
  std::thread thread_;
};

// The checkpoint to go on from in a folder: the one that `latest` names, or else the newest file, the first
// that is whole. Empty where there is none. Reads the files. Throws Error where there are some and none is
// whole.
std::optional<std::filesystem::path> find_whole_checkpoint(const std::filesystem::path& folder);

std::string iteration_checkpoint_name(std::int64_t iteration);  // "iteration_N.pt", N iterations done in all

}  // namespace ssd
