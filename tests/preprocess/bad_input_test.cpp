// Input as strangers have it: what ssd_preprocess says of each kind of bad set, word for word, and with which
// exit code. The readers' own tests hold every field; here is one of each kind, through the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/files.hpp"
#include "support/run_program.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A set of one picture (128 x 128) with one box of class 7.
json good_set() {
  return {{"images", {{{"id", 1}, {"file_name", "a.jpg"}, {"width", 128}, {"height", 128}}}},
          {"categories", {{{"id", 7}, {"name", "cell"}}}},
          {"annotations",
           {{{"id", 5},
             {"image_id", 1},
             {"category_id", 7},
             {"bbox", {10, 10, 20, 20}},
             {"area", 400},
             {"iscrowd", 0}}}}};
}

json with_box(const json& box) {
  auto set = good_set();
  set["annotations"][0]["bbox"] = box;
  return set;
}

template <class Change>
json changed(Change change) {
  auto set = good_set();
  change(set);
  return set;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

struct BadSet {
  const char* name;
  std::string annotations;  // the text of the JSON
  std::string picture;      // below tests/data/jpeg_nasty; empty: the file is missing
  std::string error;        // all of stderr after the line that names the JSON; JSON and IMAGES stand for the
                            // paths, ~ for what the JSON library says
};

const std::string kGoodPicture = "ok/hopper.jpg";

void PrintTo(const BadSet& bad, std::ostream* out) {
  *out << bad.name;
}

class BadInput : public testing::TestWithParam<BadSet> {};

TEST_P(BadInput, T2_02_T2_11_T2_12_T2_13_T2_14_is_told_word_for_word_and_fails) {
  const auto& bad = GetParam();
  const TemporaryFolder folder;
  const auto json_path = folder.path() / "set.json", images = folder.path() / "images",
             out = folder.path() / "out";
  write_text(json_path, bad.annotations);
  fs::create_directories(images);
  if (!bad.picture.empty())
    fs::copy_file(fs::path(SSD_TEST_DATA) / "jpeg_nasty" / bad.picture, images / "a.jpg");
  const auto result = run_program({SSD_BIN_DIR "/ssd_preprocess", "--split", "train", "--annotations",
                                   json_path.string(), "--images", images.string(), out.string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  const auto err = replaced(replaced(result.err, json_path.string(), "JSON"), images.string(), "IMAGES");
  const auto expected = "train: reading 'JSON'\n" + bad.error;
  if (const auto gap = expected.find('~'); gap != expected.npos) {
    EXPECT_THAT(err, testing::StartsWith(expected.substr(0, gap)));
    EXPECT_THAT(err, testing::EndsWith(expected.substr(gap + 1)));
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 2) << err;
  } else {
    EXPECT_EQ(err, expected);
  }
  EXPECT_TRUE(!fs::exists(out) || fs::is_empty(out));
}

std::string one_problem(const std::string& kind, const std::string& line) {
  return "train: 1 " + kind + ":\n  " + line +
         "\nerror: train: 1 problems in the input, listed above; nothing was written; mend them, or leave "
         "out what is bad with "
         "--skip-bad\n";
}

std::string bad_box(const std::string& complaint) {
  return one_problem("annotations whose bbox is missing, not 4 finite numbers, or of negative size",
                     "'JSON': annotations[0] (id 5): " + complaint);
}

std::string bad_field(const std::string& complaint) {
  return one_problem("annotations with a field that is missing or wrong",
                     "'JSON': annotations[0] (id 5): " + complaint);
}

INSTANTIATE_TEST_SUITE_P(
    Json, BadInput,
    testing::Values(
        BadSet{"not_json", "<!DOCTYPE html><html>", kGoodPicture,
               "error: 'JSON' is HTML or XML, not JSON; was the download refused?\n"},
        BadSet{"empty", "", kGoodPicture,
               "error: 'JSON' is not valid JSON or is cut off (0 bytes: ~); download or write it again\n"},
        BadSet{"cut_off", good_set().dump().substr(0, 100), kGoodPicture,
               "error: 'JSON' is not valid JSON or is cut off (100 bytes: ~); download or write it again\n"},
        BadSet{"without_images", changed([](json& set) { set.erase("images"); }).dump(), kGoodPicture,
               "error: 'JSON' has no \"images\" array; is it a COCO annotation file?\n"},
        BadSet{"without_categories", changed([](json& set) { set.erase("categories"); }).dump(), kGoodPicture,
               "error: 'JSON' has no \"categories\" array; is it a COCO detection annotation file?\n"},
        BadSet{"without_annotations", changed([](json& set) { set.erase("annotations"); }).dump(),
               kGoodPicture, "error: 'JSON' has no \"annotations\" array; is it a COCO annotation file?\n"},
        BadSet{"no_image", changed([](json& set) {
                             set["images"] = json::array(), set["annotations"] = json::array();
                           }).dump(),
               kGoodPicture, "error: 'JSON': no image in it\n"},
        BadSet{"no_category", changed([](json& set) {
                                set["categories"] = json::array(), set["annotations"] = json::array();
                              }).dump(),
               kGoodPicture, "error: 'JSON': no category in it\n"},
        BadSet{"results_file", R"([{"image_id": 1, "category_id": 7, "bbox": [1, 2, 3, 4], "score": 0.5}])",
               kGoodPicture,
               "error: 'JSON' is not a COCO annotation file: its top is not an object; a file of detections, "
               "perhaps?\n"}),
    [](const auto& item) { return item.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Annotations, BadInput,
    testing::Values(
        BadSet{"box_nan", replaced(with_box({1, 2, 3, "X"}).dump(), "\"X\"", "NaN"), kGoodPicture,
               bad_box("bbox[3] is NaN, but must be a finite number")},
        BadSet{
            "box_negative_size", with_box({10, 10, -5, 20}).dump(), kGoodPicture,
            bad_box(
                "bbox [10, 10, -5, 20] has a negative width or height; boxes are left, top, width, height")},
        BadSet{"box_of_three", with_box({1, 2, 3}).dump(), kGoodPicture,
               bad_box("bbox has 3 numbers, but must have 4: left, top, width, height")},
        BadSet{"box_of_strings", with_box({"1", 2, 3, 4}).dump(), kGoodPicture,
               bad_box("bbox[0] is \"1\", but must be a finite number")},
        BadSet{"image_id_string", changed([](json& set) { set["annotations"][0]["image_id"] = "1"; }).dump(),
               kGoodPicture, bad_field("image_id is \"1\", but must be a whole number")},
        BadSet{"area_null", changed([](json& set) { set["annotations"][0]["area"] = nullptr; }).dump(),
               kGoodPicture, bad_field("area is null, but must be a finite number")},
        BadSet{"unknown_image", changed([](json& set) { set["annotations"][0]["image_id"] = 99; }).dump(),
               kGoodPicture,
               one_problem("annotations of an image that is not in the file",
                           "'JSON': annotations[0] (id 5): image_id 99 is not among the images")},
        BadSet{"unknown_category",
               changed([](json& set) { set["annotations"][0]["category_id"] = 99; }).dump(), kGoodPicture,
               one_problem("annotations of a category that is not in the file",
                           "'JSON': annotations[0] (id 5): category_id 99 is not among the categories")},
        BadSet{"image_id_twice", changed([](json& set) { set["images"].push_back(set["images"][0]); }).dump(),
               kGoodPicture,
               one_problem("images whose id was used before",
                           "'JSON': images[1] (id 1): its id was used before")},
        BadSet{"category_id_twice",
               changed([](json& set) { set["categories"].push_back(set["categories"][0]); }).dump(),
               kGoodPicture,
               one_problem("categories whose id was used before",
                           "'JSON': categories[1] (id 7): its id was used before")},
        BadSet{"width_string", changed([](json& set) {
                                 set["images"][0]["width"] = "128";
                                 set["images"].push_back({{"id", 2}, {"file_name", "a.jpg"}});
                                 set["annotations"] = json::array();
                               }).dump(),
               kGoodPicture,
               one_problem("images with a field that is missing or wrong",
                           "'JSON': images[0] (id 1): width is \"128\", but must be a whole number")}),
    [](const auto& item) { return item.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Pictures, BadInput,
    testing::Values(
        BadSet{"missing", good_set().dump(), "",
               "error: train: 0 of 1 images found in 'IMAGES' (looked for 'a.jpg')\n"},
        BadSet{"empty", good_set().dump(), "reject/empty.jpg",
               one_problem("images that cannot be decoded", "'IMAGES/a.jpg' (image 1): an empty file")},
        BadSet{"png_named_jpg", good_set().dump(), "notjpeg/png_named.jpg",
               one_problem("images whose size is not the JSON's",
                           "'IMAGES/a.jpg' (image 1): the JSON says 128 x 128, the picture has 6 x 6 "
                           "(EXIF orientation 1)")},
        BadSet{"cut_off", good_set().dump(), "warn/trunc3000_testorig.jpg",
               one_problem("images that are cut off",
                           "'IMAGES/a.jpg' (image 1): its 3000 bytes end before the picture does")},
        BadSet{"of_another_size", good_set().dump(), "ok/testorig.jpg",
               one_problem("images whose size is not the JSON's",
                           "'IMAGES/a.jpg' (image 1): the JSON says 128 x 128, the picture has 227 x 149 "
                           "(EXIF orientation 1)")}),
    [](const auto& item) { return item.param.name; });

}  // namespace
}  // namespace ssd
