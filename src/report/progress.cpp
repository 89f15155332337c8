#include "report/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "core/log.hpp"

namespace ssd {
namespace {

double steady_now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void write_to_stderr(std::string_view text) {
  // Progress that cannot be shown must not stop the work.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

std::string format_rate(double per_second, std::string_view unit) {
  return fmt::format("{:.{}f} {}/s", per_second, per_second < 10 ? 1 : 0, unit);
}

}  // namespace

ProgressOutput progress_output_of_stderr() {
  return ::isatty(STDERR_FILENO) == 1 ? ProgressOutput::terminal : ProgressOutput::lines;
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::min(seconds, 1e9)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string format_progress(std::string_view label, std::string_view unit, std::uint64_t done,
                            std::uint64_t total, double elapsed_s) {
  const double rate = elapsed_s > 0 ? static_cast<double>(done) / elapsed_s : 0;
  std::string line = fmt::format("{}: {}", label, done);
  if (total != 0) line += fmt::format("/{}", total);
  line += fmt::format(" {}", unit);
  if (total != 0) line += fmt::format(" ({} %)", done * 100 / total);
  line += ", " + format_rate(rate, unit);
  if (total > done && rate > 0) {
    line += fmt::format(", {} left", format_duration(static_cast<double>(total - done) / rate));
  }
  return line;
}

Progress::Progress(std::string label, std::string unit, std::uint64_t total, ProgressOptions options)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      options_(std::move(options)),
      is_silent_(log_identity().rank != 0) {
  if (!options_.now_s) options_.now_s = steady_now_s;
  if (!options_.write) options_.write = write_to_stderr;
  start_s_ = options_.now_s();
  next_s_ = start_s_ + options_.quiet_s;
}

Progress::~Progress() {
  if (line_width_ != 0) options_.write("\n");
}

void Progress::advance(std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  done_ += count;
  if (is_silent_) return;
  const double now = options_.now_s();
  if (now < next_s_) return;
  const bool on_terminal = options_.output == ProgressOutput::terminal;
  next_s_ = now + (on_terminal ? options_.terminal_interval_s : options_.lines_interval_s);
  show(now - start_s_);
}

void Progress::show(double elapsed_s) {
  auto line = format_progress(label_, unit_, done_, total_, elapsed_s);
  if (options_.output == ProgressOutput::lines) return options_.write(line + "\n");
  const auto width = line.size();
  if (width < line_width_) line.append(line_width_ - width, ' ');  // over the rest of a longer line
  line_width_ = width;
  options_.write("\r" + line);
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  const double elapsed_s = options_.now_s() - start_s_;
  if (is_silent_ || elapsed_s < options_.quiet_s) return;
  auto line = fmt::format("{}: {} {} in {}, {}", label_, done_, unit_, format_duration(elapsed_s),
                          format_rate(static_cast<double>(done_) / elapsed_s, unit_));
  if (line_width_ != 0) {
    if (line.size() < line_width_) line.append(line_width_ - line.size(), ' ');
    line.insert(0, "\r");
    line_width_ = 0;
  }
  options_.write(line + "\n");
}

}  // namespace ssd
