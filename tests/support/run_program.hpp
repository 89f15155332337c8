// Runs a program of this build and catches what it prints.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/files.hpp"

namespace ssd {

struct ProgramResult {
  int exit_code = -1;  // 128 + signal where one ended it
  std::string out;
  std::string err;
};

// Starts it and returns the process id; output goes to files `out` and `err` in the folder.
inline pid_t start_program(const std::vector<std::string>& command, const std::filesystem::path& folder) {
  std::vector<std::string> copy = command;
  std::vector<char*> arguments;
  for (auto& word : copy) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const auto out = (folder / "out").string();
  const auto err = (folder / "err").string();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), STDOUT_FILENO);
  ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

inline ProgramResult run_program(const std::vector<std::string>& command) {
  const TemporaryFolder folder;
  int status = 0;
  ::waitpid(start_program(command, folder.path()), &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text_of(folder.path() / "out"),
          text_of(folder.path() / "err")};
}

}  // namespace ssd
