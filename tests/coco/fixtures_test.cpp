// Published and hand-made evaluation cases: what pycocotools makes of them, to the last bit, and what their
// sources say; whole and divided over several parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "coco/evaluate.hpp"
#include "coco/summary.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "evaluate_in_parts.hpp"

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

Summary stats_of(const nlohmann::json& pycocotools_result) {
  Summary stats{};
  for (std::size_t i = 0; i < stats.size(); ++i) stats[i] = pycocotools_result["stats"][i];
  return stats;
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
    // The file has what its project wants; pycocotools takes annotation id 0 for "unmatched".
    if (name == "hotcoco_zero_ids")
      fixture.expected = stats_of(read_json(folder / "pycocotools_results.json")[name]);
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

std::uint32_t crc32_of(const std::vector<double>& values) {
  return crc32(std::as_bytes(std::span(values)));
}

TEST_P(EvaluationFixture, has_the_bits_of_pycocotools) {
  const auto& fixture = GetParam();
  const auto expected = read_json(kData / "cocoeval" / "pycocotools_results.json").at(fixture.name);
  const auto result =
      evaluate({}, read_annotations(fixture.ground_truth), read_detections(fixture.detections)).result;
  EXPECT_EQ(crc32_of(result.precision), expected["crc32"]["precision"]);
  EXPECT_EQ(crc32_of(result.recall), expected["crc32"]["recall"]);
  EXPECT_EQ(crc32_of(result.scores), expected["crc32"]["scores"]);
  const auto summary = summarize(result);
  EXPECT_EQ(summary, stats_of(expected));
  EXPECT_EQ(format_summary(result.parameters, summary), expected["lines"].get<std::string>());
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

// Evaluating a file that was written gives the numbers of the evaluation in memory.
TEST_P(EvaluationFixture, survives_a_round_trip_of_the_detections) {
  const auto& fixture = GetParam();
  const auto set = read_annotations(fixture.ground_truth);
  const auto detections = read_detections(fixture.detections);
  const std::filesystem::path copy = testing::TempDir() + "round_trip_" + fixture.name + ".json";
  write_detections(copy, detections);
  EXPECT_EQ(evaluate({}, set, read_detections(copy)).result.precision,
            evaluate({}, set, detections).result.precision);
  std::filesystem::remove(copy);
}

// The file of a known case whose image ids are partly strings.
TEST(EvaluationFiles, ids_written_as_strings_are_refused) {
  const auto path = kData / "cocoeval" / "crowd_ignore_2299" / "gt_mixed_ids.json";
  try {
    read_annotations(path);
    FAIL() << "read";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), fmt::format("'{}': images[0]: id is \"2299\", but must be a whole number "
                                        "(and 14 more in the file)",
                                        path.string()));
  }
}

// What users of comparable programs reported (tests/user_reports.md), and the cases that hold it.
const std::map<std::string, std::vector<std::string>> kReports{
    {"T2_04", {"E4b_only_crowd_class"}},
    {"T2_15", {"E18_dup_ann_id"}},
    {"T3_01", {"E8_empty"}},
    {"T3_02", {"E8b_no_gt", "E16_class_without_gt"}},
    {"T3_03", {"E1_id0", "E1b_id1", "E1c_single_id0"}},
    {"T3_04", {"E3a_maxdet_101st", "E3b_maxdet_100th", "E3c_maxdet_per_class"}},
    {"T3_05", {"E2a_tie_fp_first", "E2b_tie_tp_first"}},
    {"T3_06",
     {"E10_h5", "E10_h5.5", "E10_h6", "E10_h6.5", "E10_h7", "E10_h7.5", "E10_h8", "E10_h8.5", "E10_h9",
      "E10_h9.5"}},
    {"T3_07", {"E12_single"}},
    {"T3_09", {"E7_unknown_class"}},
    {"T3_10", {"E13_duplicate_det"}},
    {"T3_11", {"E5b_area_1024", "E5c_area_9216", "E6_big_fp"}},
    {"T3_12", {"E17_ignore"}},
    {"T3_17", {"E15_big_ids"}}};

TEST(EvaluationFixtures, of_every_report_are_there) {
  for (const auto& [report, cases] : kReports) {
    for (const auto& name : cases)
      EXPECT_TRUE(std::filesystem::is_directory(kData / "eval_cases" / name)) << report << ' ' << name;
  }
}

std::string test_name(const testing::TestParamInfo<Fixture>& info) {
  std::string name = info.param.name;
  for (const auto& [report, cases] : kReports) {
    if (std::find(cases.begin(), cases.end(), info.param.name) != cases.end()) name = report + "_" + name;
  }
  for (auto& character : name) {
    if (std::isalnum(static_cast<unsigned char>(character)) == 0) character = '_';
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(Published, EvaluationFixture, testing::ValuesIn(published_fixtures()), test_name);
INSTANTIATE_TEST_SUITE_P(Cases, EvaluationFixture, testing::ValuesIn(case_fixtures()), test_name);

}  // namespace
}  // namespace ssd
