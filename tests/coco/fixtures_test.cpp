// Published and hand-made evaluation cases: the twelve numbers, whole and divided over several parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "coco/evaluate.hpp"
#include "coco/evaluate_in_parts.hpp"
#include "coco/summary.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

const std::filesystem::path kData = SSD_TEST_DATA;
constexpr std::array<const char*, 12> kNames{"AP",  "AP50", "AP75",  "APs", "APm", "APl",
                                             "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"};

struct Fixture {
  std::string name;
  std::filesystem::path ground_truth;
  std::filesystem::path detections;
  Summary expected{};
  double tolerance = 0;
};

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

std::vector<Fixture> published_fixtures() {
  std::vector<Fixture> fixtures;
  const auto folder = kData / "cocoeval";
  const auto all = read_json(folder / "expected.json");
  for (const auto& [name, entry] : all.items()) {
    if (name.starts_with("_")) continue;
    // The expected numbers are sums in another order than numpy's: equal but for the last digits.
    Fixture fixture{name, folder / std::string(entry["gt"]), folder / std::string(entry["dt"]), {}, 1e-12};
    for (std::size_t i = 0; i < kNames.size(); ++i) fixture.expected[i] = entry["stats"][kNames[i]];
    // The file has what ids from 1 would give; pycocotools takes annotation id 0 for "unmatched".
    if (name == "hotcoco_zero_ids") {
      constexpr double kPrecision = 0.44224422442244227;
      fixture.expected = {kPrecision, kPrecision, kPrecision, -1,      kPrecision, -1,
                          1.0 / 3,    2.0 / 3,    2.0 / 3,    -1, 2.0 / 3, -1};
    }
    fixtures.push_back(fixture);
  }
  return fixtures;
}

std::vector<Fixture> case_fixtures() {
  std::vector<Fixture> fixtures;
  for (const auto& entry : std::filesystem::directory_iterator(kData / "eval_cases")) {
    if (!entry.is_directory()) continue;
    Fixture fixture{entry.path().filename(), entry.path() / "gt.json", entry.path() / "dt.json", {}, 0};
    const auto expected = read_json(entry.path() / "expected.json");
    for (std::size_t i = 0; i < kNames.size(); ++i) fixture.expected[i] = expected["stats"][i];
    fixtures.push_back(fixture);
  }
  return fixtures;
}

class EvaluationFixture : public testing::TestWithParam<Fixture> {};

TEST_P(EvaluationFixture, gives_the_expected_numbers) {
  const auto& fixture = GetParam();
  const auto set = read_annotations(fixture.ground_truth);
  const auto detections = read_detections(fixture.detections);
  const auto summary = summarize(evaluate({}, set, detections).result);
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    EXPECT_NEAR(summary[i], fixture.expected[i], fixture.tolerance) << kNames[i];
  }
}

TEST_P(EvaluationFixture, does_not_depend_on_the_division_of_images) {
  const auto& fixture = GetParam();
  const auto set = read_annotations(fixture.ground_truth);
  const auto detections = read_detections(fixture.detections);
  const auto whole = evaluate({}, set, detections).result;
  for (const std::size_t parts : {2, 4}) {
    const auto merged = evaluate_in_parts({}, set, detections, parts);
    EXPECT_EQ(merged.precision, whole.precision) << parts;
    EXPECT_EQ(merged.recall, whole.recall) << parts;
    EXPECT_EQ(merged.scores, whole.scores) << parts;
    EXPECT_EQ(merged.image_count, set.images.size());
    EXPECT_EQ(summarize(merged), summarize(whole)) << parts;
  }
}

std::string test_name(const testing::TestParamInfo<Fixture>& info) {
  std::string name = info.param.name;
  for (auto& character : name) {
    if (std::isalnum(static_cast<unsigned char>(character)) == 0) character = '_';
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(Published, EvaluationFixture, testing::ValuesIn(published_fixtures()), test_name);
INSTANTIATE_TEST_SUITE_P(Cases, EvaluationFixture, testing::ValuesIn(case_fixtures()), test_name);

}  // namespace
}  // namespace ssd
