// A program of this build while it runs: waited for until it prints something, its ranks found and sent
// signals.
#pragma once

#include <signal.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "support/run_program.hpp"

namespace ssd {

class RunningProgram {
 public:
  explicit RunningProgram(const std::vector<std::string>& command)
      : child_(start_program(command, folder_.path())) {}
  ~RunningProgram() {
    if (!has_ended_) ::kill(child_, SIGKILL), ::waitpid(child_, nullptr, 0);
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  pid_t process() const { return child_; }

  // Until it has printed the text on its error output, or has ended without: false.
  bool wait_for(const std::string& text) { return wait_for("err", text); }
  bool wait_for_output(const std::string& text) { return wait_for("out", text); }
  std::string output() const { return text_of(folder_.path() / "out"); }  // so far

  // The process of a rank that mpirun has started; 0 where it is not found.
  pid_t rank_process(int rank) const {
    const auto wanted = std::string("OMPI_COMM_WORLD_RANK=") + std::to_string(rank) + '\0';
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const auto id = entry.path().filename().string();
      if (id.find_first_not_of("0123456789") != std::string::npos) continue;
      std::ifstream status(entry.path() / "stat"), environment(entry.path() / "environ");
      std::string text((std::istreambuf_iterator<char>(status)), {});
      // "pid (name) state parent ..."
      const auto after_name = text.rfind(") ");
      if (after_name == std::string::npos || std::stoi(text.substr(after_name + 4)) != child_) continue;
      text.assign(std::istreambuf_iterator<char>(environment), {});
      if (text.find(wanted) != std::string::npos) return std::stoi(id);
    }
    return 0;
  }

  ProgramResult wait() {
    if (!has_ended_) ::waitpid(child_, &status_, 0);
    has_ended_ = true;
    return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_),
            text_of(folder_.path() / "out"), text_of(folder_.path() / "err")};
  }

 private:
  bool wait_for(const char* file, const std::string& text) {
    while (!contains(file, text)) {
      if (has_ended()) return contains(file, text);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  bool contains(const char* file, const std::string& text) const {
    const auto path = folder_.path() / file;
    return std::filesystem::exists(path) && text_of(path).find(text) != std::string::npos;
  }
  bool has_ended() {
    if (!has_ended_) has_ended_ = ::waitpid(child_, &status_, WNOHANG) == child_;
    return has_ended_;
  }

  TemporaryFolder folder_;
  pid_t child_;
  int status_ = 0;
  bool has_ended_ = false;
};

}  // namespace ssd
