// A process that dies in the middle of its work, for a test that is built with disk_calls.cpp.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "support/disk_calls.hpp"

namespace ssd::test {

// Does the work in a process of its own that is killed before its call of this number
// (support/disk_calls.hpp) on the files of the folder. False where it ended before, and well.
inline bool die_before_call(std::size_t number, const std::filesystem::path& folder,
                            const std::function<void()>& work) {
  const auto child = ::fork();
  if (child == 0) {
    DiskCalls calls(folder);
    calls.spoil_number(number, Spoil::kill);
    try {
      work();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  const bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  EXPECT_TRUE(is_killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << status;
  return is_killed;
}

}  // namespace ssd::test
