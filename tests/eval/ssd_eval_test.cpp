// The program as users call it: what it prints and writes, how it fails, alone and under mpirun.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "support/files.hpp"
#include "support/run_program.hpp"

namespace ssd {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::filesystem::path kData = SSD_TEST_DATA;
const std::string kProgram = SSD_BIN_DIR "/ssd_eval";
const auto kPublished = kData / "cocoeval" / "cocoapi_val2014_100";

ProgramResult run_eval(std::vector<std::string> words) {
  words.insert(words.begin(), kProgram);
  return run_program(words);
}

ProgramResult run_ranks(int ranks, std::vector<std::string> words) {
  words.insert(words.begin(), {SSD_MPIEXEC, "-np", std::to_string(ranks), kProgram});
  return run_program(words);
}

nlohmann::json expected_of(const std::string& name) {
  return nlohmann::json::parse(text_of(kData / "cocoeval" / "pycocotools_results.json")).at(name);
}

std::pair<std::string, std::string> files_of(const std::string& name) {
  const auto entry = nlohmann::json::parse(text_of(kData / "cocoeval" / "expected.json")).at(name);
  const auto folder = kData / "cocoeval";
  return {folder / std::string(entry["gt"]), folder / std::string(entry["dt"])};
}

class SsdEval : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    write_text(folder.path() / name, text);
    return folder.path() / name;
  }
  std::string truth() const {
    return write("truth.json", R"({"images": [{"id": 1}, {"id": 2}],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}, {"id": 3, "name": "bird"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 40, 40], "area": 1600, "iscrowd": 0},
                        {"id": 2, "image_id": 2, "category_id": 2, "bbox": [0, 0, 40, 40], "area": 1600, "iscrowd": 0}]})");
  }
  static std::string record(int image, int category, const char* score = "0.9") {
    return fmt::format(R"({{"image_id":{},"category_id":{},"bbox":[0,0,40,40],"score":{}}})", image, category,
                       score);
  }
  TemporaryFolder folder;
};

TEST_F(SsdEval, prints_the_lines_of_pycocotools_alone_and_on_ranks) {
  for (const std::string name : {"cocoapi_val2014_100", "hotcoco_zero_ids"}) {
    const auto [truth, results] = files_of(name);
    const std::string lines = expected_of(name)["lines"];
    EXPECT_EQ(run_eval({truth, results}).out, lines);
    EXPECT_EQ(run_eval({truth, results, "--threads", "2"}).out, lines);
    const auto ranks = run_ranks(2, {truth, results});
    EXPECT_EQ(ranks.exit_code, 0) << ranks.err;
    EXPECT_EQ(ranks.out, lines);
  }
}

TEST_F(SsdEval, writes_all_numbers_as_json) {
  const auto [truth, results] = files_of("cocoapi_val2014_100");
  const auto json = folder.path() / "out.json";
  ASSERT_EQ(run_eval({truth, results, "--json", json, "--arrays"}).exit_code, 0);
  const auto written = nlohmann::ordered_json::parse(text_of(json));
  const auto expected = expected_of("cocoapi_val2014_100");
  std::vector<std::string> names;
  std::vector<double> stats;
  for (const auto& [name, value] : written["stats"].items()) {
    names.push_back(name);
    stats.push_back(value);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10",
                                             "AR100", "ARs", "ARm", "ARl"}));
  EXPECT_EQ(stats, expected["stats"].get<std::vector<double>>());
  EXPECT_EQ(written["arrays"]["precision_shape"], (std::vector<int>{10, 101, 80, 4, 3}));
  EXPECT_EQ(written["arrays"]["recall"].size(), 10U * 80 * 4 * 3);
  EXPECT_EQ(written["categories"].size(), 80U);
  EXPECT_EQ(written["categories"][0]["name"], "person");
}

TEST_F(SsdEval, U3_outputs_that_are_no_files_are_written_through) {
  const auto results = write("results.json", "[" + record(1, 1) + "]");
  const auto run = run_eval({truth(), results, "--json", "/dev/null"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_THAT(run_eval({truth(), results, "--json", "/dev/stdout"}).out, HasSubstr("\"AP50\": "));
}

TEST_F(SsdEval, U6_fields_that_an_evaluation_has_no_use_for_are_not_asked_for) {
  const auto odd =
      write("odd.json", R"({"images": [{"id": 1, "width": null, "height": "120", "file_name": 7}],
      "categories": [{"id": 1}, {"id": 2, "name": 5}],
      "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 40, 40], "area": 1600, "iscrowd": 0}]})");
  const auto run = run_eval({odd, write("results.json", "[" + record(1, 1) + "]"), "--per-category"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("category 1   1.000   1.000        1\n"));
}

TEST_F(SsdEval, U10_outputs_are_looked_at_before_the_work) {
  const auto results = write("results.json", "[" + record(1, 1) + "]");
  for (const char* option : {"--json", "--plot"}) {
    const auto path = folder.path() / "missing" / "x";
    const auto run = run_eval({truth(), results, option, path});
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(run.err, "error: cannot write '" + path.string() + "': no folder '" +
                           path.parent_path().string() + "'; make it first\n");
    const auto ranks = run_ranks(2, {truth(), results, option, path});
    EXPECT_EQ(ranks.exit_code, 1);
    EXPECT_THAT(ranks.err, HasSubstr("make it first"));
  }
}

// /dev/full takes no byte.
TEST_F(SsdEval, U10_the_numbers_are_printed_where_a_file_cannot_be_written) {
  const auto run =
      run_eval({truth(), write("results.json", "[" + record(1, 1) + "]"), "--json", "/dev/full"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("Average Precision"));
  EXPECT_THAT(run.err, HasSubstr("cannot write '/dev/full': No space left on device"));
}

std::string gzipped(const std::string& text, const std::filesystem::path& path) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return path;
}

TEST_F(SsdEval, U11_byte_order_marks_and_gzip_are_read) {
  const auto results_text = "[" + record(1, 1) + "," + record(2, 2) + "]";
  const auto results = write("results.json", results_text);
  const auto expected = run_eval({truth(), results}).out;
  const auto truth_text = text_of(truth());
  const auto marked_truth = write("marked_truth.json", "\xef\xbb\xbf" + truth_text);
  const auto marked = write("marked.json", "\xef\xbb\xbf" + results_text);
  const auto packed_truth = gzipped(truth_text, folder.path() / "truth.json.gz");
  const auto packed = gzipped("\xef\xbb\xbf" + results_text, folder.path() / "results.json.gz");
  for (const auto& [gt, dt] :
       {std::pair{marked_truth, marked}, {packed_truth, packed}, {marked_truth, packed}}) {
    const auto run = run_eval({gt, dt, "--threads", "2"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.out, expected) << gt << ' ' << dt;
  }
  EXPECT_EQ(run_ranks(2, {packed_truth, packed}).out, expected);
}

TEST_F(SsdEval, U11_other_encodings_and_damaged_gzip_are_named) {
  const auto results = write("results.json", "[]");
  EXPECT_THAT(run_eval({write("wide.json", std::string("\xff\xfe{\0", 4)), results}).err,
              HasSubstr("wide.json' is UTF-16 or UTF-32, as Windows programs write it; save it as UTF-8"));
  const auto packed = text_of(gzipped(text_of(truth()), folder.path() / "truth.json.gz"));
  const auto cut = run_eval({write("cut.json.gz", packed.substr(0, packed.size() / 2)), results});
  EXPECT_EQ(cut.exit_code, 1);
  EXPECT_THAT(cut.err, HasSubstr("cut.json.gz' is damaged or cut off: gzip says: "));
  EXPECT_THAT(run_eval({truth(), write("page.json", "<!DOCTYPE html>")}).err,
              HasSubstr("page.json' is HTML or XML"));
  EXPECT_THAT(run_eval({truth(), write("x.json", "PK\x03\x04")}).err,
              HasSubstr("x.json' is a ZIP archive; unpack it"));
}

TEST_F(SsdEval, T3_22_per_category_shows_ap_of_each_and_a_dash_without_ground_truth) {
  const auto results = write("results.json", "[" + record(1, 1) + "," + record(1, 3) + "]");
  const auto run = run_eval({truth(), results, "--per-category"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("\ncategory      AP    AP50    boxes\n"
                                 "cat        1.000   1.000        1\n"
                                 "dog        0.000   0.000        1\n"
                                 "bird           -       -        0\n"));
}

TEST_F(SsdEval, draws_precision_over_recall) {
  const auto [truth, results] = files_of("cocoapi_val2014_100");
  const auto svg = folder.path() / "curves.svg";
  ASSERT_EQ(run_eval({truth, results, "--plot", svg}).exit_code, 0);
  EXPECT_THAT(text_of(svg), testing::AllOf(StartsWith("<svg"), HasSubstr("IoU 0.50"), HasSubstr("recall")));
}

TEST_F(SsdEval, T3_01_results_without_a_detection_are_evaluated) {
  const auto run = run_eval({truth(), write("results.json", "[]")});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("maxDets=100 ] = 0.000"));
}

TEST_F(SsdEval, T3_04_other_limits_of_detections_give_numbers) {
  const auto results = write("results.json", "[" + record(1, 1) + "]");
  const auto run = run_eval({truth(), results, "--max-dets", "1,10,300"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("(AP) @[ IoU=0.50:0.95 | area=   all | maxDets=300 ] = 0.500"));
}

TEST_F(SsdEval, T3_08_detections_of_unknown_images_are_refused_or_left_out_on_request) {
  const auto results =
      write("results.json", "[" + record(1, 1) + "," + record(77, 1) + "," + record(2, 9) + "]");
  for (const int ranks : {1, 2}) {
    const auto refused = ranks == 1 ? run_eval({truth(), results}) : run_ranks(ranks, {truth(), results});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err,
                HasSubstr("1 of 3 detections belong to images that are not in the ground truth (ids 77)"));
    EXPECT_EQ(refused.err.find("error: "), refused.err.rfind("error: "))
        << "one rank speaks: " << refused.err;
  }
  const auto run = run_eval({truth(), results, "--ignore-unknown"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(
      run.err,
      StartsWith(
          "warning: 1 of 3 detections are of images that are not in the ground truth; they do not count\n"
          "warning: 1 of 3 detections are of categories that are not in the ground truth; they do not "
          "count\n"));
}

TEST_F(SsdEval, T3_02_minus_one_is_explained_where_it_stands) {
  const auto results = write("results.json", "[" + record(1, 1) + "]");
  const auto run = run_eval({truth(), results});
  EXPECT_THAT(run.out, HasSubstr("area= large | maxDets=100 ] = -1.000"));
  EXPECT_EQ(run.err, "note: -1.000 says that there is no ground truth of this kind\n");
}

TEST_F(SsdEval, annotations_without_area_or_iscrowd_are_counted_and_evaluated) {
  const auto bare = write("bare.json", R"({"images": [{"id": 1}], "categories": [{"id": 1, "name": "cat"}],
      "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 40, 40]}]})");
  const auto run = run_eval({bare, write("results.json", "[" + record(1, 1) + "]")});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("area=medium | maxDets=100 ] = 1.000"));
  EXPECT_THAT(run.err,
              StartsWith("warning: 1 of 1 annotations have no area; width x height is taken for it\n"
                         "warning: 1 of 1 annotations have no iscrowd; they are taken for single objects\n"));
}

TEST_F(SsdEval, bad_files_and_options_are_one_line_and_an_exit_code) {
  const auto good = write("results.json", "[" + record(1, 1) + "]");
  struct Bad {
    std::vector<std::string> words;
    int exit_code;
    std::string text;
  };
  const std::vector<Bad> all{
      {{truth(), "/nowhere.json"}, 1, "cannot read '/nowhere.json': No such file or directory"},
      {{truth(), folder.path()}, 1, "it is not a regular file"},
      {{"/nowhere.json", good}, 1, "'/nowhere.json'"},
      {{good, good}, 1, "its top is not an object; a file of detections, perhaps?"},
      {{truth(), truth()}, 1, "its top is not an array of detections"},
      {{truth(), write("nan.json", "[" + record(1, 1) + "," + record(1, 1, "NaN") + "]")},
       1,
       "detection [1]: score is NaN, but must be a finite number"},
      {{truth(), write("cut.json", "[" + record(1, 1) + ",")}, 1, "is not valid JSON or is cut off"},
      {{truth(), good, "--categories", "horse"},
       2,
       "--categories: 'horse' is not a category of the ground truth"},
      {{truth(), good, "--categories", "12"}, 1, "category 12 is not in the ground truth, which has 3"},
      {{truth(), good, "--images", "5"}, 1, "image 5 is not in the ground truth, which has 2"},
      {{truth(), good, "--json", "/nowhere/out.json"}, 1, "/nowhere"},
      {{truth()}, 2, "1 files given"},
      {{truth(), good, "--max-dets", "1"}, 2, "--max-dets 1: must be three numbers"}};
  for (const auto& bad : all) {
    const auto run = run_eval(bad.words);
    EXPECT_EQ(run.exit_code, bad.exit_code) << bad.text;
    EXPECT_EQ(run.out, "") << bad.text;
    EXPECT_THAT(run.err, HasSubstr(bad.text));
    EXPECT_THAT(run.err, StartsWith("error: "));
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
}

// Rank 1 fails, or dies, when it hands over what it has matched.
TEST_F(SsdEval, T5_01_a_rank_that_is_lost_in_the_middle_ends_the_job) {
  const auto results = write("good.json", "[" + record(1, 1) + "]");
  const auto run_with = [&](const char* action) {
    std::vector<std::string> command{SSD_MPIEXEC, "-np", "2"};
    for (const auto& setting :
         {std::string("LD_PRELOAD=") + SSD_FAULT_LIBRARY, std::string("SSD_FAULT_CALL=MPI_Gather"),
          std::string("SSD_FAULT_ACTION=") + action, std::string("SSD_FAULT_RANK=1")})
      command.insert(command.end(), {"-x", setting});
    command.insert(command.end(), {kProgram, truth(), results});
    return run_program(command);
  };
  const auto failed = run_with("fail");
  EXPECT_EQ(failed.exit_code, 1) << failed.err;
  EXPECT_THAT(failed.err, testing::ContainsRegex("rank 1 .*error: MPI: MPI_Gather"));
  EXPECT_EQ(failed.out.find("Average Precision"), std::string::npos);
  const auto killed = run_with("kill");
  EXPECT_EQ(killed.exit_code, 128 + SIGKILL) << killed.err;
  EXPECT_THAT(killed.err + killed.out, HasSubstr("rank 1"));  // the launcher's words
}

TEST_F(SsdEval, agrees_with_pycocotools_on_random_sets_in_every_bit) {
  const char* name = std::getenv("SSD_TEST_PYTHON");
  const std::string python = name != nullptr ? name : "/usr/bin/python3";
  if (run_program({python, "-c", "import pycocotools.cocoeval"}).exit_code != 0)
    GTEST_SKIP() << python << " has no pycocotools";
  const std::string count = std::getenv("SSD_TEST_LONG") != nullptr ? "2000" : "50";
  const auto run = run_program({python, SSD_COMPARE_SCRIPT, kProgram, folder.path(), count});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, count + " cases agree in every bit\n");
}

}  // namespace
}  // namespace ssd
