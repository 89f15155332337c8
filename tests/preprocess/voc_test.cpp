// Pascal VOC sets: the same shards as from a COCO JSON, and what is wrong with one is named.
#include "preprocess/voc.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.hpp"
#include "support/files.hpp"
#include "support/run_program.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

const fs::path kBccd = fs::path(SSD_TEST_DATA) / "bccd";
const std::string kProgram = SSD_BIN_DIR "/ssd_preprocess";

std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = text_of(entry.path());
  return files;
}

TEST(Voc, gives_the_annotations_of_the_json_that_was_converted_from_it) {
  std::vector<AnnotationProblem> problems;
  const auto voc = read_voc({kBccd, "test", {"RBC", "WBC", "Platelets"}}, problems);
  const auto coco = read_annotations(kBccd / "coco" / "instances_test.json");
  EXPECT_TRUE(problems.empty());
  ASSERT_EQ(voc.categories.size(), coco.categories.size());
  for (std::size_t i = 0; i < voc.categories.size(); ++i) {
    EXPECT_EQ(voc.categories[i].id, coco.categories[i].id);
    EXPECT_EQ(voc.categories[i].name, coco.categories[i].name);
  }
  ASSERT_EQ(voc.images.size(), 72U);
  ASSERT_EQ(voc.images.size(), coco.images.size());
  for (std::size_t i = 0; i < voc.images.size(); ++i) {
    EXPECT_EQ(voc.images[i].id, coco.images[i].id);
    EXPECT_EQ(voc.images[i].file_name, coco.images[i].file_name);
    EXPECT_EQ(voc.images[i].width, coco.images[i].width);
    EXPECT_EQ(voc.images[i].height, coco.images[i].height);
  }
  ASSERT_EQ(voc.annotations.size(), 945U);
  ASSERT_EQ(voc.annotations.size(), coco.annotations.size());
  for (std::size_t i = 0; i < voc.annotations.size(); ++i) {
    EXPECT_EQ(voc.annotations[i].id, coco.annotations[i].id);
    EXPECT_EQ(voc.annotations[i].image_id, coco.annotations[i].image_id);
    EXPECT_EQ(voc.annotations[i].category_id, coco.annotations[i].category_id);
    EXPECT_EQ(voc.annotations[i].bbox_xywh, coco.annotations[i].bbox_xywh);
    EXPECT_EQ(voc.annotations[i].area, coco.annotations[i].area);
    EXPECT_EQ(voc.annotations[i].is_crowd, coco.annotations[i].is_crowd);
  }
}

TEST(Voc, is_packed_into_the_same_bytes_as_its_json) {
  const TemporaryFolder folder;
  const auto voc = folder.path() / "voc", coco = folder.path() / "coco";
  const auto from_voc = run_program({kProgram, "--voc", kBccd.string(), "--split", "val", "--image-set",
                                     "test", "--classes", "RBC,WBC,Platelets", voc.string()});
  ASSERT_EQ(from_voc.exit_code, 0) << from_voc.err;
  const auto from_coco =
      run_program({kProgram, "--split", "val", "--annotations", (kBccd / "coco/instances_test.json").string(),
                   "--images", (kBccd / "JPEGImages").string(), coco.string()});
  ASSERT_EQ(from_coco.exit_code, 0) << from_coco.err;
  ASSERT_EQ(files_of(voc).size(), 2U);
  EXPECT_TRUE(files_of(voc) == files_of(coco));
}

TEST(Voc, classes_are_those_of_all_annotations_in_alphabetical_order) {
  EXPECT_THAT(find_voc_classes(kBccd), ElementsAre("Platelets", "RBC", "WBC"));
  EXPECT_THAT(message_of<Error>([] { find_voc_classes("/nowhere"); }), HasSubstr("/nowhere/Annotations"));
}

// A set made here.
class MadeVoc : public testing::Test {
 protected:
  void add_list(const std::string& name, const std::string& text) {
    write_text(voc / "ImageSets" / "Main" / (name + ".txt"), text);
  }
  void add_image(const std::string& name, const std::string& objects,
                 const std::string& size = "<size><width>640</width><height>480</height></size>") {
    write_text(voc / "Annotations" / (name + ".xml"), "<annotation>" + size + objects + "</annotation>");
    fs::create_directories(voc / "JPEGImages");
    fs::copy_file(kBccd / "JPEGImages" / "BloodImage_00000.jpg", voc / "JPEGImages" / (name + ".jpg"));
  }
  static std::string object(const std::string& name, const std::string& box, const std::string& more = "") {
    return "<object><name> " + name + " </name>" + more + "<bndbox>" + box + "</bndbox></object>";
  }
  static std::string box(const std::string& xmin, const std::string& ymin, const std::string& xmax,
                         const std::string& ymax) {
    return "<xmin>" + xmin + "</xmin><ymin>" + ymin + "</ymin><xmax>" + xmax + "</xmax><ymax>" + ymax +
           "</ymax>";
  }
  AnnotationSet read(const std::string& list) { return read_voc({voc, list, {"cat", "dog"}}, problems); }

  TemporaryFolder temporary;
  fs::path voc = temporary.path() / "voc";
  std::vector<AnnotationProblem> problems;
};

TEST_F(MadeVoc, boxes_of_no_size_are_left_out_and_difficult_ones_are_crowds) {
  add_list("train", "a_1\n");
  add_image("a_1", object("dog", box("1", "2", "1", "9")) + object("cat", box("10.5", "20", "30", "40")) +
                       object("dog", box("1", "2", "3", "4"), "<difficult>1</difficult>"));
  const auto set = read("train");
  EXPECT_TRUE(problems.empty());
  ASSERT_EQ(set.annotations.size(), 2U);
  EXPECT_EQ(set.annotations[0].id, 1);
  EXPECT_EQ(set.annotations[0].category_id, CategoryId(1));
  EXPECT_EQ(set.annotations[0].bbox_xywh, (BoxXywh{10.5, 20, 19.5, 20}));
  EXPECT_EQ(set.annotations[0].area, 390);
  EXPECT_FALSE(set.annotations[0].is_crowd);
  EXPECT_EQ(set.annotations[1].category_id, CategoryId(2));
  EXPECT_TRUE(set.annotations[1].is_crowd);
}

TEST_F(MadeVoc, ids_come_from_the_digits_of_names_or_from_the_order) {
  for (const char* name : {"2007_000027", "2008_000027", "img7", "7", "none"}) add_image(name, "");
  add_list("digits", "2007_000027\n2008_000027  1\n\n");
  EXPECT_EQ(read("digits").images[0].id, ImageId(2007000028));
  EXPECT_EQ(read("digits").images[1].id, ImageId(2008000028));
  add_list("equal", "img7\n7\n");
  EXPECT_EQ(read("equal").images[0].id, ImageId(1));
  EXPECT_EQ(read("equal").images[1].id, ImageId(2));
  add_list("no_digits", "7\nnone\n");
  EXPECT_EQ(read("no_digits").images[0].id, ImageId(1));
}

TEST_F(MadeVoc, a_size_that_the_file_does_not_say_is_left_open) {
  add_list("train", "1\n");
  add_image("1", "", "");
  EXPECT_EQ(read("train").images[0].width, 0);
  EXPECT_TRUE(problems.empty());
}

TEST_F(MadeVoc, what_is_wrong_is_named_with_file_and_object) {
  add_list("train", "1\n2\n3\n4\n5\n");
  add_image("1", object("cat", box("9", "2", "3", "4")));
  add_image("2", object("cat", box("x", "2", "3", "4")));
  add_image("3", object("cat", box("1", "2", "3", "4")) + object("cow", box("1", "2", "3", "4")));
  add_image("4", "<object>");
  const auto set = read("train");
  EXPECT_EQ(set.images.size(), 3U);
  EXPECT_EQ(set.annotations.size(), 1U);
  ASSERT_EQ(problems.size(), 5U);
  EXPECT_THAT(problems[0].text,
              EndsWith("1.xml': object[0]: xmin 9 ymin 2 xmax 3 ymax 4: a negative width or height"));
  EXPECT_THAT(problems[1].text, EndsWith("2.xml': object[0]: <bndbox> is missing or not four numbers"));
  EXPECT_THAT(problems[2].text, EndsWith("3.xml': object[1]: the class 'cow' is not among the classes"));
  EXPECT_THAT(problems[3].text, HasSubstr("4.xml': not XML: "));
  EXPECT_THAT(problems[4].text, EndsWith("5.xml': no such file"));
}

TEST_F(MadeVoc, lists_named_train_and_val_become_these_splits) {
  add_list("train", "1\n2\n");
  add_list("val", "3\n");
  for (const char* name : {"1", "2", "3"}) add_image(name, object("cat", box("1", "2", "30", "40")));
  const auto out = temporary.path() / "out";
  const auto run = run_program({kProgram, "--voc", voc.string(), out.string()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("train: 2 images, 2 boxes"));
  EXPECT_THAT(run.out, HasSubstr("val: 1 images, 1 boxes"));
}

TEST_F(MadeVoc, wrong_use_and_missing_lists_are_one_line_with_an_exit_code) {
  const auto out = (temporary.path() / "out").string();
  add_image("1", object("cat", box("1", "2", "30", "40")));
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    std::string error;
  };
  const std::vector<Case> cases{
      {{"--voc", voc.string(), "--image-set", "test", out},
       2,
       "error: --image-set 'test': --split says which split it is to be\n"},
      {{"--voc", voc.string()},
       2,
       "error: 0 paths given; with --voc only OUT is expected; see ssd_preprocess --help\n"},
      {{"--voc", voc.string(), "--images", "x", out},
       2,
       "error: --voc and --annotations, --images exclude each other\n"},
      {{"--classes", "a", "coco", out},
       2,
       "error: --image-set and --classes are for --voc DIR; see ssd_preprocess --help\n"},
      {{"--voc", voc.string(), "--classes", "a,,b", out},
       2,
       "error: --classes 'a,,b': an empty name, or one that is given twice\n"},
      {{"--voc", voc.string(), "--split", "val", "--image-set", "test", out},
       1,
       "error: no file '" + (voc / "ImageSets/Main/test.txt").string() + "'\n"}};
  for (const auto& use : cases) {
    auto command = use.arguments;
    command.insert(command.begin(), kProgram);
    const auto run = run_program(command);
    EXPECT_EQ(run.exit_code, use.exit_code);
    EXPECT_EQ(run.err, use.error);
  }
}

}  // namespace
}  // namespace ssd
