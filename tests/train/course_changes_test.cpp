#include "train/course_changes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/train_options.hpp"

namespace ssd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CourseChanges, names_options_that_differ_and_no_others) {
  EXPECT_THAT(course_changes("warmup = 0\nsave = a\nhue = -1 1\n", "warmup = 300\nsave = b\nhue = -1 1"),
              ElementsAre("--warmup 300 (then 0)"));
  EXPECT_THAT(course_changes("fp16 = yes\n", "fp16 = no\n"), ElementsAre("--fp16 no (then yes)"));
  EXPECT_THAT(course_changes("", "warmup = 3\n"), IsEmpty());
  EXPECT_THAT(course_changes("x-warmup = 3\n", "warmup = 4\n"), IsEmpty());
}

std::string configuration(std::vector<const char*> words) {
  words.insert(words.begin(), "ssd_train");
  return parse_train_options(static_cast<int>(words.size()), words.data()).options->configuration;
}

// Each is an option of ssd_train by that name.
TEST(CourseChanges, every_option_of_the_course_is_found_in_a_configuration) {
  const auto changed = configuration({"--lr",
                                      "1",
                                      "--momentum",
                                      "0",
                                      "--wd",
                                      "1",
                                      "--warmup",
                                      "1",
                                      "--multistep",
                                      "1",
                                      "--skip-crowd",
                                      "--hue",
                                      "0",
                                      "0",
                                      "--saturation",
                                      "1",
                                      "1",
                                      "--contrast",
                                      "1",
                                      "1",
                                      "--brightness",
                                      "1",
                                      "1",
                                      "--flip-probability",
                                      "0",
                                      "--fp16",
                                      "--gradient-type",
                                      "fp32"});
  EXPECT_EQ(course_changes(configuration({}), changed).size(), 13U);
  EXPECT_THAT(course_changes(changed, changed), IsEmpty());
}

}  // namespace
}  // namespace ssd
