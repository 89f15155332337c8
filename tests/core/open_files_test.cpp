#include "core/open_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

// The limits of this process for the length of a test.
class Limits {
 public:
  explicit Limits(rlim_t soft) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit changed{soft, before_.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &changed) != 0) throw std::runtime_error("cannot set RLIMIT_NOFILE");
  }
  ~Limits() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;
  rlim_t hard() const { return before_.rlim_max; }

 private:
  rlimit before_{};
};

TEST(OpenFiles, U15_the_soft_limit_becomes_the_hard_one) {
  const Limits limits(64);
  EXPECT_EQ(open_file_limit(), 64U);
  raise_open_file_limit();
  rlimit now{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, limits.hard());
}

TEST(OpenFiles, U15_too_low_a_limit_is_told_with_what_it_is_and_what_is_needed) {
  const Limits limits(64);
  expect_room_for_files(10, "ten shards");
  EXPECT_THAT(message_of<Error>([] { expect_room_for_files(80, "80 shards"); }),
              testing::MatchesRegex("ulimit -n is 64: so many files may be open, but 1[0-9][0-9] or more are "
                                    "needed for 80 shards; raise it before the start: ulimit -n 1024 .*"));
  EXPECT_EQ(std::string(system_error("open", "x", EMFILE).what()),
            "cannot open 'x': Too many open files; ulimit -n is 64: raise it first");
}

}  // namespace
}  // namespace ssd
