// Every evaluation case of tests/data through ssd_eval's own path, on 1, 2 and 4 ranks and with 1 and 2
// threads: the bits of pycocotools.
#include "eval/eval_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "comm/agreement.hpp"
#include "core/digest.hpp"
#include "support/files.hpp"
#include "support/tiny_set.hpp"
#include "support/world.hpp"

namespace ssd {
namespace {

const std::filesystem::path kData = SSD_TEST_DATA;

struct Case {
  std::string name;
  std::filesystem::path ground_truth;
  std::filesystem::path results;
};

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  const auto published = kData / "cocoeval";
  const auto all = read_json(published / "expected.json");
  for (const auto& [name, entry] : all.items()) {
    if (!name.starts_with("_"))
      cases.push_back({name, published / std::string(entry["gt"]), published / std::string(entry["dt"])});
  }
  for (const auto& entry : std::filesystem::directory_iterator(kData / "eval_cases")) {
    if (entry.is_directory())
      cases.push_back({entry.path().filename(), entry.path() / "gt.json", entry.path() / "dt.json"});
  }
  return cases;
}

std::uint32_t crc32_of(const std::vector<double>& values) {
  return crc32(std::as_bytes(std::span(values)));
}

class EvalRun : public testing::Test {
 protected:
  EvalRun() { world = test::copy_of_world(); }

  // A folder that all ranks know, of rank 0.
  std::filesystem::path shared(const TemporaryFolder& folder) const {
    std::array<char, 256> name{};
    folder.path().string().copy(name.data(), name.size() - 1);
    world.broadcast_in_place(std::as_writable_bytes(std::span(name)));
    return name.data();
  }

  MpiComm world;
};

TEST_F(EvalRun, has_the_bits_of_pycocotools_for_any_number_of_ranks_and_threads) {
  const auto expected = read_json(kData / "cocoeval" / "pycocotools_results.json");
  const auto cases = all_cases();
  EXPECT_GE(cases.size(), 41U);
  for (const auto& one : cases) {
    for (const int threads : {1, 2}) {
      EvalOptions options;
      options.ground_truth = one.ground_truth;
      options.results = one.results;
      options.threads = threads;
      const auto report = evaluate_files(options, world);
      ASSERT_EQ(report.has_value(), world.is_root());
      if (!report) continue;
      const auto& numbers = expected.at(one.name);
      EXPECT_EQ(crc32_of(report->result.precision), numbers["crc32"]["precision"]) << one.name;
      EXPECT_EQ(crc32_of(report->result.recall), numbers["crc32"]["recall"]) << one.name;
      EXPECT_EQ(crc32_of(report->result.scores), numbers["crc32"]["scores"]) << one.name;
      for (std::size_t i = 0; i < report->summary.size(); ++i)
        EXPECT_EQ(report->summary[i], numbers["stats"][i]) << one.name;
    }
  }
}

TEST_F(EvalRun, of_shards_equals_that_of_the_json) {
  const TemporaryFolder folder;
  const auto path = shared(folder);
  if (world.is_root()) {
    std::vector<test::TinyRecord> records;
    for (int i = 5; i >= 1; --i) records.push_back(test::record_with_box(i, 60, 40, {1.5 * i, 4, 20, 10.25}));
    test::write_tiny_set(path / "shards", Split::val, std::move(records), 2);
    nlohmann::json truth{{"categories", {{{"id", 7}, {"name", "seven"}}, {{"id", 3}, {"name", "three"}}}},
                         {"images", nlohmann::json::array()},
                         {"annotations", nlohmann::json::array()}};
    auto results = nlohmann::json::array();
    for (int i = 5; i >= 1; --i) {
      truth["images"].push_back({{"id", i}});
      const auto box = {1.5 * i, 4.0, 20.0, 10.25};
      truth["annotations"].push_back(
          {{"id", 10 * i}, {"image_id", i}, {"category_id", 7}, {"bbox", box}, {"iscrowd", 0}});
      results.push_back(
          {{"image_id", i}, {"category_id", 7}, {"bbox", {1.0 * i, 4.0, 20.0, 9.0}}, {"score", .1 * i}});
      results.push_back({{"image_id", i}, {"category_id", 3}, {"bbox", box}, {"score", .3}});
    }
    write_text(path / "truth.json", truth.dump());
    write_text(path / "results.json", results.dump());
  }
  world.barrier();
  EvalOptions options;
  options.ground_truth = path / "truth.json";
  options.results = path / "results.json";
  const auto of_json = evaluate_files(options, world);
  options.ground_truth = path / "shards";
  const auto of_shards = evaluate_files(options, world);
  world.barrier();
  if (!world.is_root()) return;
  EXPECT_EQ(of_shards->result.precision, of_json->result.precision);
  EXPECT_EQ(of_shards->result.scores, of_json->result.scores);
  EXPECT_EQ(of_shards->summary, of_json->summary);
  EXPECT_GT(of_json->summary[0], 0.3);
  EXPECT_LT(of_json->summary[0], 1);
  ASSERT_EQ(of_shards->categories.size(), 2U);
  EXPECT_EQ(of_shards->categories[1].name, "seven");
}

TEST_F(EvalRun, unknown_images_and_categories_are_counted_once_whatever_the_number_of_ranks) {
  const TemporaryFolder folder;
  const auto path = shared(folder);
  if (world.is_root()) {
    write_text(path / "truth.json",
               R"({"images": [{"id": 0}, {"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}],
                   "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
                   "annotations": [{"id": 1, "image_id": 3, "category_id": 1, "bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0}]})");
    std::string results = "[";
    for (const int image : {0, 1, 2, 3, 4, 8, 9}) {
      for (const int category : {1, 2, 5}) {
        results += fmt::format(R"({}{{"image_id":{},"category_id":{},"bbox":[0,0,9,9],"score":0.5}})",
                               results.size() == 1 ? "" : ",", image, category);
      }
    }
    write_text(path / "results.json", results + "]");
  }
  world.barrier();
  EvalOptions options;
  options.ground_truth = path / "truth.json";
  options.results = path / "results.json";
  EXPECT_THROW(evaluate_files(options, world), AgreedFailure);
  options.ignores_unknown_images = true;
  options.categories = {"a"};
  const auto report = evaluate_files(options, world);
  world.barrier();
  if (!report) return;
  EXPECT_EQ(report->detection_count, 21U);
  EXPECT_EQ(report->unknown_image_count, 6U);
  EXPECT_EQ(report->result.unknown_category_count, 5U);
  EXPECT_EQ(report->warnings,
            (std::vector<std::string>{
                "6 of 21 detections are of images that are not in the ground truth; they do not count",
                "5 of 21 detections are of categories that are not in the ground truth; they do not count"}));
  ASSERT_EQ(report->categories.size(), 1U);
  EXPECT_EQ(report->categories[0].id, CategoryId(1));
}

}  // namespace
}  // namespace ssd
