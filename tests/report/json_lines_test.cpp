#include "report/json_lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <vector>

#include "core/error.hpp"

namespace ssd {
namespace {

using Json = JsonLines::Json;

class JsonLinesTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }

  std::vector<std::string> lines() const {
    std::ifstream file(path_);
    std::vector<std::string> result;
    for (std::string line; std::getline(file, line);) result.push_back(line);
    return result;
  }

  Json parsed(std::size_t index) const {
    const auto line = lines().at(index);
    EXPECT_TRUE(line.starts_with("DLLL ")) << line;
    return Json::parse(line.substr(5));
  }

  std::filesystem::path path_ = testing::TempDir() + "json_lines_" +
                                testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
};

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> result;
  for (const auto& [key, value] : object.items()) result.push_back(key);
  return result;
}

TEST_F(JsonLinesTest, lines_have_the_keys_and_types_of_dllogger) {
  JsonLines log(path_);
  log.log({3, 120}, {{"loss", 4.25}, {"lr", 0.0026}});
  const auto line = parsed(0);
  EXPECT_THAT(keys(line),
              testing::ElementsAre("timestamp", "datetime", "elapsedtime", "type", "step", "data"));
  EXPECT_EQ(line["type"], "LOG");
  EXPECT_EQ(line["step"], Json({3, 120}));
  EXPECT_EQ(line["data"].dump(), R"({"loss":4.25,"lr":0.0026})");
  EXPECT_THAT(line["timestamp"].get<std::string>(),
              testing::MatchesRegex("[0-9]+\\.[0-9][0-9][0-9][0-9][0-9][0-9]"));
  EXPECT_THAT(line["datetime"].get<std::string>(),
              testing::MatchesRegex("....-..-.. [0-9][0-9]:[0-9][0-9]:[0-9][0-9]\\.[0-9]+"));
  EXPECT_GE(std::stod(line["elapsedtime"].get<std::string>()), 0.0);
}

TEST_F(JsonLinesTest, parameters_are_a_step_of_that_name_and_metadata_a_type) {
  JsonLines log(path_);
  log.parameters({{"batch_size", 32}});
  log.metadata("loss", {{"unit", nullptr}});
  log.log(Json::array(), {{"mAP", 0.25}});
  EXPECT_EQ(parsed(0)["step"], "PARAMETER");
  EXPECT_EQ(parsed(0)["data"]["batch_size"], 32);
  EXPECT_EQ(parsed(1)["type"], "METADATA");
  EXPECT_EQ(parsed(1)["metric"], "loss");
  EXPECT_TRUE(parsed(1)["metadata"].contains("unit"));
  EXPECT_EQ(parsed(2)["step"], Json::array());
}

TEST_F(JsonLinesTest, a_line_is_in_the_file_before_the_log_is_closed) {
  JsonLines log(path_);
  log.log(1, {{"loss", 1}});
  EXPECT_EQ(lines().size(), 1U);
  log.log(2, {{"loss", 2}});
  EXPECT_EQ(lines().size(), 2U);
}

TEST_F(JsonLinesTest, a_resumed_run_appends) {
  { JsonLines(path_).log(1, {{"loss", 1}}); }
  { JsonLines(path_).log(2, {{"loss", 2}}); }
  ASSERT_EQ(lines().size(), 2U);
  EXPECT_EQ(parsed(0)["step"], 1);
  EXPECT_EQ(parsed(1)["step"], 2);
}

TEST_F(JsonLinesTest, a_line_cut_off_by_a_kill_spoils_no_other) {
  { std::ofstream(path_) << "DLLL {\"timestamp\": \"17"; }
  { JsonLines(path_).log(2, {{"loss", 2}}); }
  ASSERT_EQ(lines().size(), 2U);
  EXPECT_EQ(parsed(1)["step"], 2);
}

TEST_F(JsonLinesTest, numbers_that_are_not_finite_and_broken_text_stay_valid_json) {
  JsonLines log(path_);
  log.log(1,
          {{"loss", std::nan("")}, {"scale", std::numeric_limits<double>::infinity()}, {"name", "a\xff\n"}});
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_TRUE(parsed(0)["data"]["loss"].is_null());
  EXPECT_TRUE(parsed(0)["data"]["scale"].is_null());
}

TEST_F(JsonLinesTest, doubles_come_back_as_they_were) {
  JsonLines log(path_);
  log.log(1, {{"mAP", 0.1 + 0.2}});
  EXPECT_EQ(parsed(0)["data"]["mAP"].get<double>(), 0.1 + 0.2);
}

TEST_F(JsonLinesTest, a_file_that_cannot_be_opened_is_named) {
  try {
    JsonLines log("/nowhere/log.json");
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cannot open '/nowhere/log.json': No such file or directory");
  }
}

TEST_F(JsonLinesTest, a_full_disk_is_an_error) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  JsonLines log("/dev/full");
  EXPECT_THROW(log.log(1, {{"loss", 1}}), Error);
}

}  // namespace
}  // namespace ssd
