#include "core/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

namespace po = boost::program_options;

po::options_description options() {
  po::options_description options;
  options.add_options()("threads", po::value<int>())("range", po::value<Words>()->multitoken())  //
      ("fp16", "")("no-fp16", "")("files", po::value<Words>());
  return options;
}

po::variables_map parse(const Words& words) {
  return parse_command_line("ssd_program", words, options(), "files",
                            [](const std::string& option) { return option == "no-fp16" ? "fp16" : option; });
}

std::string refusal_of(const Words& words) {
  return message_of<UsageError>([&] { parse(words); });
}

TEST(CommandLine, an_option_is_written_in_full) {
  EXPECT_EQ(parse({"--threads", "2"})["threads"].as<int>(), 2);
  EXPECT_EQ(parse({"--threads=2"})["threads"].as<int>(), 2);
  EXPECT_EQ(refusal_of({"--thr", "2"}), "unrecognised option '--thr'; see ssd_program --help");
}

TEST(CommandLine, of_an_option_given_twice_the_later_one_counts) {
  EXPECT_EQ(parse({"--threads", "2", "--fp16", "--threads=3"})["threads"].as<int>(), 3);
  EXPECT_EQ(parse({"--range", "1", "2", "--fp16", "--range", "3"})["range"].as<Words>(), Words{"3"});
}

TEST(CommandLine, of_options_that_contradict_each_other_the_later_one_counts) {
  const auto values = parse({"--fp16", "--no-fp16"});
  EXPECT_EQ(values.count("fp16"), 0U);
  EXPECT_EQ(values.count("no-fp16"), 1U);
}

TEST(CommandLine, negative_numbers_are_values) {
  EXPECT_EQ(parse({"--range", "-0.5", "-.5", "-3"})["range"].as<Words>(), (Words{"-0.5", "-.5", "-3"}));
  EXPECT_EQ(parse({"--threads", "-1"})["threads"].as<int>(), -1);
}

TEST(CommandLine, words_without_an_option_are_kept_in_order) {
  EXPECT_EQ(parse({"a", "--threads", "2", "b", "a"})["files"].as<Words>(), (Words{"a", "b", "a"}));
}

TEST(CommandLine, what_is_wrong_is_said_with_the_way_to_the_help) {
  for (const auto& words : {Words{"--threads"}, Words{"--threads", "two"}, Words{"--nothing"}, Words{"-x"}})
    EXPECT_THAT(refusal_of(words), testing::EndsWith("; see ssd_program --help")) << words.back();
}

}  // namespace
}  // namespace ssd
