#include "coco/annotations.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <map>

#include "core/error.hpp"

namespace ssd {
namespace {

using Kind = AnnotationProblemKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// A file in the temporary folder for the length of a test.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view text)
      : path_(testing::TempDir() + "annotations_" + std::to_string(++count_) + ".json") {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  static inline int count_ = 0;
  std::filesystem::path path_;
};

std::string document(std::string_view images, std::string_view categories, std::string_view annotations) {
  return fmt::format(R"({{"images": [{}], "categories": [{}], "annotations": [{}]}})", images, categories,
                     annotations);
}
constexpr const char* kImage = R"({"id": 1, "file_name": "a.jpg", "width": 60, "height": 40})";
constexpr const char* kCategory = R"({"id": 3, "name": "cat"})";

std::string with_annotation(std::string_view annotation) {
  return document(kImage, kCategory, annotation);
}

std::string error_of(const std::string& text) {
  const TemporaryFile file(text);
  try {
    read_annotations(file.path());
  } catch (const Error& error) {
    std::string line = error.what();
    const auto name = fmt::format("'{}'", file.path().string());
    if (const auto at = line.find(name); at != std::string::npos) line.replace(at, name.size(), "FILE");
    return line;
  }
  return "no error";
}

TEST(Annotations, are_read_with_all_their_fields) {
  const TemporaryFile file(R"({
    "info": {"year": 2017, "nested": [1, {"id": 5}, "images"]},
    "annotations": [
      {"segmentation": [[1.5, 2, 3, 4], [5]], "area": 12.25, "iscrowd": 0, "image_id": 9, "bbox": [1, 2.5, 3, 4e0],
       "category_id": 3, "id": 17, "ignore": 1, "attributes": {"bbox": [0]}},
      {"segmentation": {"counts": [1, 2], "size": [40, 60]}, "area": 7, "iscrowd": 1, "image_id": 7,
       "category_id": 1, "id": 18, "bbox": [0, 0, 0.1, 0]}
    ],
    "categories": [{"supercategory": "x", "id": 3, "name": "ca\u0074 \u00e9"}, {"id": 1, "name": "dog"}],
    "images": [{"license": 1, "file_name": "a\/b.jpg", "height": 40, "width": 60, "id": 9},
               {"id": 7.0, "file_name": "c.jpg"}],
    "licenses": null
  })");
  const auto set = read_annotations(file.path());
  ASSERT_EQ(set.categories.size(), 2U);
  EXPECT_EQ(set.categories[0].id, CategoryId(3));
  EXPECT_EQ(set.categories[0].name, "cat \xc3\xa9");
  EXPECT_EQ(set.categories[1].name, "dog");
  ASSERT_EQ(set.images.size(), 2U);
  EXPECT_EQ(set.images[0].id, ImageId(9));
  EXPECT_EQ(set.images[0].file_name, "a/b.jpg");
  EXPECT_EQ(set.images[0].width, 60);
  EXPECT_EQ(set.images[0].height, 40);
  EXPECT_EQ(set.images[1].id, ImageId(7));
  EXPECT_EQ(set.images[1].width, 0);
  ASSERT_EQ(set.annotations.size(), 2U);
  EXPECT_EQ(set.annotations[0].id, 17);
  EXPECT_EQ(set.annotations[0].image_id, ImageId(9));
  EXPECT_EQ(set.annotations[0].category_id, CategoryId(3));
  EXPECT_THAT(set.annotations[0].bbox_xywh, ElementsAre(1, 2.5, 3, 4));
  EXPECT_EQ(set.annotations[0].area, 12.25);
  EXPECT_FALSE(set.annotations[0].is_crowd);
  EXPECT_TRUE(set.annotations[1].is_crowd);
  EXPECT_EQ(set.annotations[1].bbox_xywh[3], 0);  // a box of no size is the packer's business
  EXPECT_EQ(set.missing_area_count, 0U);
  EXPECT_EQ(set.missing_iscrowd_count, 0U);
}

TEST(Annotations, without_area_or_iscrowd_get_defaults_and_are_counted) {
  const TemporaryFile file(with_annotation(R"(
      {"id": 1, "image_id": 1, "category_id": 3, "bbox": [0, 0, 40, 40]},
      {"id": 2, "image_id": 1, "category_id": 3, "bbox": [0, 0, 0.1, 3], "iscrowd": 1},
      {"id": 3, "image_id": 1, "category_id": 3, "bbox": [0, 0, 2, 3], "area": 5, "iscrowd": false})"));
  const auto set = read_annotations(file.path());
  EXPECT_EQ(set.annotations[0].area, 1600);
  EXPECT_EQ(set.annotations[1].area, 0.1 * 3);
  EXPECT_EQ(set.annotations[2].area, 5);
  EXPECT_EQ(set.missing_area_count, 2U);
  EXPECT_EQ(set.missing_iscrowd_count, 1U);
}

TEST(Annotations, may_share_ids_and_have_id_0) {
  const TemporaryFile file(
      with_annotation(R"({"id": 0, "image_id": 1, "category_id": 3, "bbox": [0, 0, 4, 4]},
                                              {"id": 5, "image_id": 1, "category_id": 3, "bbox": [1, 0, 4, 4]},
                                              {"id": 5, "image_id": 1, "category_id": 3, "bbox": [2, 0, 4, 4]})"));
  const auto set = read_annotations(file.path());
  ASSERT_EQ(set.annotations.size(), 3U);
  EXPECT_EQ(set.annotations[0].id, 0);
  EXPECT_EQ(set.annotations[2].bbox_xywh[0], 2);
}

TEST(Annotations, may_be_none) {
  const TemporaryFile file(document("", "", ""));
  EXPECT_TRUE(read_annotations(file.path()).images.empty());
}

TEST(Annotations, keep_ids_that_a_double_cannot_hold) {
  const TemporaryFile file(
      document(R"({"id": 9007199254740993}, {"id": -9223372036854775808})", kCategory, ""));
  const auto set = read_annotations(file.path());
  EXPECT_EQ(set.images[0].id, ImageId(9007199254740993));
  EXPECT_EQ(set.images[1].id, ImageId(std::numeric_limits<std::int64_t>::min()));
}

// Expected: strtod's result, which is correctly rounded.
TEST(Annotations, numbers_are_correctly_rounded) {
  const std::vector<const char*> numbers{"0.1",
                                         "473.07000000000005",
                                         "2.2250738585072011e-308",
                                         "9007199254740993.0",
                                         "1.00000000000000011102230246251565404236316680908203125",
                                         "1.00000000000000011102230246251565404236316680908203124",
                                         "5e-324",
                                         "123456789012345678901234567890",
                                         "0.12345678901234567890125"};
  for (const char* number : numbers) {
    const TemporaryFile file(with_annotation(
        fmt::format(R"({{"id": 1, "image_id": 1, "category_id": 3, "bbox": [{}, 0, 1, 1]}})", number)));
    EXPECT_EQ(read_annotations(file.path()).annotations[0].bbox_xywh[0], std::strtod(number, nullptr))
        << number;
  }
}

struct BadFile {
  const char* name;
  std::string text;
  const char* error;
};

std::string test_name(const testing::TestParamInfo<BadFile>& bad_file) {
  return bad_file.param.name;
}

class BadAnnotationFile : public testing::TestWithParam<BadFile> {};

TEST_P(BadAnnotationFile, is_refused_with_a_line_that_says_why) {
  EXPECT_EQ(error_of(GetParam().text), GetParam().error);
}

std::string annotation(std::string_view replaced) {  // with one field replaced
  std::map<std::string, std::string> fields{{"id", "17"},         {"image_id", "1"},
                                            {"category_id", "3"}, {"bbox", "[1, 2, 3, 4]"},
                                            {"area", "12"},       {"iscrowd", "0"}};
  if (const auto colon = replaced.find(':'); colon == std::string_view::npos) {
    fields.erase(std::string(replaced));
  } else {
    fields[std::string(replaced.substr(0, colon))] = replaced.substr(colon + 1);
  }
  std::string text;
  for (const auto& [key, value] : fields)
    text += fmt::format("{}\"{}\": {}", text.empty() ? "{" : ", ", key, value);
  return with_annotation(text + "}");
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadAnnotationFile,
    testing::Values(
        BadFile{
            "bbox_of_three", annotation("bbox:[1, 2, 3]"),
            "FILE: annotations[0] (id 17): bbox has 3 numbers, but must have 4: left, top, width, height"},
        BadFile{
            "bbox_of_five", annotation("bbox:[1, 2, 3, 4, 5]"),
            "FILE: annotations[0] (id 17): bbox has 5 numbers, but must have 4: left, top, width, height"},
        BadFile{
            "bbox_empty", annotation("bbox:[]"),
            "FILE: annotations[0] (id 17): bbox has 0 numbers, but must have 4: left, top, width, height"},
        BadFile{"bbox_string", annotation("bbox:[\"a\", 1, 1, 1]"),
                "FILE: annotations[0] (id 17): bbox[0] is \"a\", but must be a finite number"},
        BadFile{"bbox_number_as_string", annotation("bbox:[1, 1, 1, \"1\"]"),
                "FILE: annotations[0] (id 17): bbox[3] is \"1\", but must be a finite number"},
        BadFile{"bbox_nan", annotation("bbox:[NaN, 1, 1, 1]"),
                "FILE: annotations[0] (id 17): bbox[0] is NaN, but must be a finite number"},
        BadFile{"bbox_infinite", annotation("bbox:[1, -Infinity, 1, 1]"),
                "FILE: annotations[0] (id 17): bbox[1] is -Infinity, but must be a finite number"},
        BadFile{"bbox_too_large", annotation("bbox:[1, 1, 1e999, 1]"),
                "FILE: annotations[0] (id 17): bbox[2] is 1e999, but must be a finite number"},
        BadFile{
            "bbox_null", annotation("bbox:null"),
            "FILE: annotations[0] (id 17): bbox is null, but must be 4 numbers: left, top, width, height"},
        BadFile{"bbox_object", annotation("bbox:{\"x\": 1}"),
                "FILE: annotations[0] (id 17): bbox is an object, but must be 4 numbers: left, top, width, "
                "height"},
        BadFile{"bbox_nested", annotation("bbox:[[1, 2, 3, 4]]"),
                "FILE: annotations[0] (id 17): bbox[0] is an array, but must be a finite number"},
        BadFile{"bbox_missing", annotation("bbox"), "FILE: annotations[0] (id 17): has no bbox"},
        BadFile{"bbox_negative", annotation("bbox:[10, 10, -5, 20]"),
                "FILE: annotations[0] (id 17): bbox [10, 10, -5, 20] has a negative width or height; boxes "
                "are left, top, "
                "width, height"},
        BadFile{"image_id_string", annotation("image_id:\"1\""),
                "FILE: annotations[0] (id 17): image_id is \"1\", but must be a whole number"},
        BadFile{"image_id_fraction", annotation("image_id:7.5"),
                "FILE: annotations[0] (id 17): image_id is 7.5, but must be a whole number of 64 bits "
                "(decimals: up to "
                "2^53)"},
        BadFile{"image_id_huge_decimal", annotation("image_id:9007199254740994.0"),
                "FILE: annotations[0] (id 17): image_id is 9007199254740994, but must be a whole number of "
                "64 bits "
                "(decimals: up to 2^53)"},
        BadFile{"image_id_unsigned", annotation("image_id:9223372036854775808"),
                "FILE: annotations[0] (id 17): image_id is 9223372036854775808, but must be a whole number "
                "of 64 bits "
                "(decimals: up to 2^53)"},
        BadFile{"image_id_beyond_64_bits", annotation("image_id:99999999999999999999"),
                "FILE: annotations[0] (id 17): image_id is 99999999999999999999, but must be a whole number"},
        BadFile{"image_id_unknown", annotation("image_id:99"),
                "FILE: annotations[0] (id 17): image_id 99 is not among the images"},
        BadFile{"image_id_missing", annotation("image_id"), "FILE: annotations[0] (id 17): has no image_id"},
        BadFile{"category_id_unknown", annotation("category_id:99"),
                "FILE: annotations[0] (id 17): category_id 99 is not among the categories"},
        BadFile{"category_id_missing", annotation("category_id"),
                "FILE: annotations[0] (id 17): has no category_id"},
        BadFile{"id_missing", annotation("id"), "FILE: annotations[0]: has no id"},
        BadFile{"id_string", annotation("id:\"x\""),
                "FILE: annotations[0]: id is \"x\", but must be a whole number"},
        BadFile{"area_null", annotation("area:null"),
                "FILE: annotations[0] (id 17): area is null, but must be a finite number"},
        BadFile{"area_negative", annotation("area:-1"), "FILE: annotations[0] (id 17): area -1 is negative"},
        BadFile{"iscrowd_2", annotation("iscrowd:2"),
                "FILE: annotations[0] (id 17): iscrowd is 2, but must be 0 or 1"},
        BadFile{"iscrowd_string", annotation("iscrowd:\"0\""),
                "FILE: annotations[0] (id 17): iscrowd is \"0\", but must be 0 or 1"},
        BadFile{"long_value", annotation("area:\"0123456789012345678901234567890123456789\""),
                "FILE: annotations[0] (id 17): area is \"012345678901234567890123456789012345678..., but "
                "must be a "
                "finite number"},
        BadFile{"annotation_no_object", with_annotation("[1, 2]"), "FILE: annotations[0]: is not an object"}),
    test_name);

INSTANTIATE_TEST_SUITE_P(
    ImagesAndCategories, BadAnnotationFile,
    testing::Values(
        BadFile{"image_id_twice", document(R"({"id": 4}, {"id": 4})", kCategory, ""),
                "FILE: images[1] (id 4): its id was used before"},
        BadFile{"image_without_id", document(R"({"file_name": "a.jpg"})", kCategory, ""),
                "FILE: images[0]: has no id"},
        BadFile{"image_file_name_number", document(R"({"id": 4, "file_name": 5})", kCategory, ""),
                "FILE: images[0] (id 4): file_name is 5, but must be a string"},
        BadFile{"image_width_negative", document(R"({"id": 4, "width": -5})", kCategory, ""),
                "FILE: images[0] (id 4): width -5 is no size"},
        BadFile{"image_height_huge", document(R"({"id": 4, "height": 2147483648})", kCategory, ""),
                "FILE: images[0] (id 4): height 2147483648 is no size"},
        BadFile{"image_width_string", document(R"({"id": 4, "width": "60"})", kCategory, ""),
                "FILE: images[0] (id 4): width is \"60\", but must be a whole number"},
        BadFile{"image_no_object", document("4", kCategory, ""), "FILE: images[0]: is not an object"},
        BadFile{"category_id_twice",
                document(kImage, R"({"id": 3, "name": "a"}, {"id": 3, "name": "b"})", ""),
                "FILE: categories[1] (id 3): its id was used before"},
        BadFile{"category_without_name", document(kImage, R"({"id": 3})", ""),
                "FILE: categories[0] (id 3): has no name"},
        BadFile{"category_name_null", document(kImage, R"({"name": null, "id": 3})", ""),
                "FILE: categories[0] (id 3): name is null, but must be a string"},
        BadFile{"category_without_id", document(kImage, R"({"name": "a"})", ""),
                "FILE: categories[0]: has no id"}),
    test_name);

INSTANTIATE_TEST_SUITE_P(
    Files, BadAnnotationFile,
    testing::Values(
        BadFile{"no_images", R"({"categories": [], "annotations": []})",
                "FILE has no \"images\" array; is it a COCO annotation file?"},
        BadFile{"no_categories", R"({"images": [], "annotations": []})",
                "FILE has no \"categories\" array; is it a COCO detection annotation file?"},
        BadFile{"no_annotations", R"({"images": [], "categories": []})",
                "FILE has no \"annotations\" array; is it a COCO annotation file?"},
        BadFile{"images_no_array", R"({"images": {}, "categories": [], "annotations": []})",
                "FILE: \"images\" is not an array; is it a COCO annotation file?"},
        BadFile{"annotations_null", R"({"images": [], "categories": [], "annotations": null})",
                "FILE: \"annotations\" is not an array; is it a COCO annotation file?"},
        BadFile{
            "results_file", R"([{"image_id": 1}])",
            "FILE is not a COCO annotation file: its top is not an object; a file of detections, perhaps?"},
        BadFile{"html", "<!DOCTYPE html><html>", "FILE is HTML or XML, not JSON; was the download refused?"},
        BadFile{"a_number", "5",
                "FILE is not a COCO annotation file: its top is not an object; a file of detections, "
                "perhaps?"}),
    test_name);

class BrokenJson : public testing::TestWithParam<BadFile> {};

TEST_P(BrokenJson, is_refused) {
  EXPECT_THAT(error_of(GetParam().text), StartsWith("FILE is not valid JSON"));
}

INSTANTIATE_TEST_SUITE_P(
    Files, BrokenJson,
    testing::Values(
        BadFile{"empty", "", ""}, BadFile{"blank", " \n", ""},
        BadFile{"cut_in_a_string", R"({"images": [{"id": 1, "file_na)", ""},
        BadFile{"unquoted_key", R"({images: []})", ""}, BadFile{"invalid_utf8", "{\"images\": \"\xff\"}", ""},
        BadFile{"missing_comma", R"({"images": [{"id": 1} {"id": 2}], "categories": [], "annotations": []})",
                ""},
        BadFile{"something_after_the_end", R"({"images": [], "categories": [], "annotations": []} {})", ""},
        BadFile{"brace_after_the_end", R"({"images": [], "categories": [], "annotations": []}})", ""}),
    test_name);

TEST(Annotations, cut_off_anywhere_are_refused) {
  const auto text =
      document(kImage, kCategory, R"({"segmentation": [[1, 2]], "id": 1, "image_id": 1, "category_id": 3,
      "bbox": [0, 0, 4, 4], "area": 16, "iscrowd": 0}, {"id": 2, "image_id": 1, "category_id": 3, "bbox": [1, 1, 2, 2]})");
  ASSERT_EQ(error_of(text), "no error");
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_THAT(error_of(text.substr(0, length)), StartsWith("FILE is not valid JSON")) << length;
  }
}

TEST(Annotations, of_a_missing_file_name_it) {
  try {
    read_annotations("/nowhere/instances.json");
    FAIL() << "read";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cannot read '/nowhere/instances.json': No such file or directory");
  }
  EXPECT_THROW(read_annotations(testing::TempDir()), Error);
}

TEST(AnnotationProblems, are_all_collected_and_the_rest_is_read) {
  const TemporaryFile file(document(R"({"id": 1}, {"id": "x"}, {"id": 1}, {"id": 2})",
                                    R"({"id": 3, "name": "cat"}, {"id": 3, "name": "dog"})",
                                    R"({"id": 1, "image_id": 1, "category_id": 3, "bbox": [0, 0, 1, 1]},
         {"id": 2, "image_id": 99, "category_id": 98, "bbox": [0, 0, 1, 1]},
         {"id": 3, "image_id": 1, "category_id": 3, "bbox": [0, 0, -1, 1], "area": "4"},
         {"id": 4, "image_id": 2, "category_id": 3, "bbox": [0, 0, 2, 2], "iscrowd": 0})"));
  std::vector<AnnotationProblem> problems;
  const auto set = read_annotations(file.path(), problems);
  EXPECT_EQ(set.images.size(), 2U);
  EXPECT_EQ(set.categories.size(), 1U);
  EXPECT_EQ(set.categories[0].name, "cat");
  ASSERT_EQ(set.annotations.size(), 2U);
  EXPECT_EQ(set.annotations[1].id, 4);
  EXPECT_EQ(set.missing_area_count, 2U);
  EXPECT_EQ(set.missing_iscrowd_count, 1U);

  std::map<Kind, int> counts;
  for (const auto& problem : problems) ++counts[problem.kind];
  EXPECT_EQ(counts, (std::map<Kind, int>{{Kind::bad_image, 1},
                                         {Kind::duplicate_image_id, 1},
                                         {Kind::duplicate_category_id, 1},
                                         {Kind::bad_annotation, 1},
                                         {Kind::bad_box, 1},
                                         {Kind::unknown_image, 1},
                                         {Kind::unknown_category, 1}}));
  const auto unknown = std::find_if(problems.begin(), problems.end(), [](const auto& problem) {
    return problem.kind == Kind::unknown_category;
  });
  EXPECT_EQ(unknown->index, 1U);
  EXPECT_EQ(unknown->id, 2);
  EXPECT_THAT(unknown->text, HasSubstr("annotations[1] (id 2): category_id 98 is not among the categories"));
}

TEST(AnnotationProblems, are_counted_by_the_form_that_throws) {
  EXPECT_EQ(error_of(document(R"({"id": 1}, {"id": "x"}, {"id": 1})", kCategory, "")),
            "FILE: images[1]: id is \"x\", but must be a whole number (and 1 more in the file)");
}

TEST(AnnotationProblems, every_kind_has_a_description_of_its_own) {
  std::map<std::string, int> texts;
  for (const auto kind :
       {Kind::bad_category, Kind::duplicate_category_id, Kind::bad_image, Kind::duplicate_image_id,
        Kind::bad_annotation, Kind::bad_box, Kind::unknown_image, Kind::unknown_category}) {
    ++texts[describe(kind)];
  }
  EXPECT_EQ(texts.size(), 8U);
}

}  // namespace
}  // namespace ssd
