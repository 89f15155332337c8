// A line that says how far something long has come: count, rate, time left. On a terminal it is drawn over
// itself; where stderr is a file or a pipe it becomes a whole line now and then, without carriage returns or
// colours. What is done within the first seconds says nothing at all. Silent on ranks other than 0.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace ssd {

enum class ProgressOutput { terminal, lines };
ProgressOutput progress_output_of_stderr();

struct ProgressOptions {
  ProgressOutput output = progress_output_of_stderr();
  double quiet_s = 3;  // nothing is said before
  double terminal_interval_s = 0.2;
  double lines_interval_s = 30;
  std::function<double()> now_s;                // a steady clock, where none is given
  std::function<void(std::string_view)> write;  // stderr, where none is given
};

// All members may be called from any thread, and for every single item: they cost a lock and a look at the
// clock.
class Progress {
 public:
  // total 0: not known, so no time left is said. unit: the plural of what is counted ("images").
  Progress(std::string label, std::string unit, std::uint64_t total, ProgressOptions options = {});
  ~Progress();  // ends a terminal line that was left open
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::uint64_t count = 1);
  void finish();  // a last whole line with count, time and rate, if it took longer than quiet_s

 private:
  void show(double elapsed_s);

  std::string label_;
  std::string unit_;
  std::uint64_t total_;
  ProgressOptions options_;
  bool is_silent_;
  std::mutex mutex_;
  std::uint64_t done_ = 0;
  double start_s_ = 0;
  double next_s_ = 0;           // when the next line is due
  std::size_t line_width_ = 0;  // characters of the open terminal line; 0: none is open
};

// "packing: 1200/5000 images (24 %), 406 images/s, 9 s left"
std::string format_progress(std::string_view label, std::string_view unit, std::uint64_t done,
                            std::uint64_t total, double elapsed_s);
std::string format_duration(double seconds);  // "9 s", "3 min 20 s", "1 h 02 min"

}  // namespace ssd
