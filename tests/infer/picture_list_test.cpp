#include "infer/picture_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;

std::vector<std::string> names_of(const PictureList& list) {
  std::vector<std::string> names;
  for (const auto& picture : list.pictures) names.push_back(picture.path.filename().string());
  return names;
}

std::vector<std::int64_t> ids_of(const PictureList& list) {
  std::vector<std::int64_t> ids;
  for (const auto& picture : list.pictures) ids.push_back(picture.id.value());
  return ids;
}

class PictureListTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a/2.jpg", "a/1.JPEG", "a/notes.txt", "a/in/3.jpg", "b/2.jpg"})
      write_text(at(name), "x");
    fs::create_directories(at("empty"));
  }
  fs::path at(const std::string& name) const { return folder.path() / name; }

  TemporaryFolder folder;
};

TEST_F(PictureListTest, takes_files_in_their_order_and_those_of_folders_by_name_each_once) {
  const auto list =
      list_pictures(std::vector{at("b/2.jpg"), at("a"), at("a/../a/2.jpg"), at("missing.jpg")}, nullptr);
  EXPECT_THAT(names_of(list), ElementsAre("2.jpg", "1.JPEG", "2.jpg", "missing.jpg"));
  EXPECT_THAT(ids_of(list), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(list.problems, IsEmpty());
}

TEST_F(PictureListTest, a_folder_without_pictures_is_a_problem) {
  const auto list = list_pictures(std::vector{at("empty"), at("b")}, nullptr);
  EXPECT_THAT(names_of(list), ElementsAre("2.jpg"));
  EXPECT_THAT(list.problems,
              ElementsAre(EndsWith("empty': no .jpg, .jpeg, .png, .webp or .bmp file in this folder")));
}

TEST_F(PictureListTest, ids_come_from_the_truth_by_file_name) {
  AnnotationSet truth;
  truth.images = {
      {ImageId(77), "a/2.jpg", 0, 0}, {ImageId(5), "b/2.jpg", 0, 0}, {ImageId(6), "other.jpg", 0, 0}};
  const auto list = list_pictures(std::vector{at("b/2.jpg"), at("a"), at("a/notes.txt")}, &truth);
  EXPECT_THAT(ids_of(list), ElementsAre(5, 77));
  EXPECT_EQ(list.pictures[1].truth, &truth.images[0]);
  EXPECT_EQ(list.not_in_truth_count, 1U);  // 1.JPEG of the folder
  EXPECT_THAT(list.problems, ElementsAre(EndsWith("notes.txt': the truth has no image of this file name")));
}

TEST_F(PictureListTest, a_picture_that_two_images_of_the_truth_could_be_is_a_problem) {
  AnnotationSet truth;
  truth.images = {{ImageId(1), "2.jpg", 0, 0}, {ImageId(2), "a/2.jpg", 0, 0}};
  const auto list = list_pictures(std::vector{at("a/2.jpg")}, &truth);
  EXPECT_THAT(list.pictures, IsEmpty());
  EXPECT_EQ(list.problems.size(), 1U);
}

TEST_F(PictureListTest, a_file_name_fits_whole_names_of_folders_only) {
  AnnotationSet truth;
  truth.images = {{ImageId(1), "xa/2.jpg", 0, 0}, {ImageId(2), "c/a/2.jpg", 0, 0}};
  EXPECT_EQ(list_pictures(std::vector{at("a/2.jpg")}, &truth).problems.size(), 1U);
}

TEST(DrawingNames, are_those_of_the_pictures_and_never_equal) {
  const std::vector<Picture> pictures{
      {"a/x.jpg", ImageId(1)}, {"b/x.jpeg", ImageId(2)}, {"x_2.jpg", ImageId(3)}, {"y", ImageId(4)}};
  EXPECT_THAT(drawing_names(pictures, ".png"), ElementsAre("x.png", "x_2.png", "x_2_3.png", "y.png"));
}

TEST(Orientation, follows_the_size_that_the_truth_says) {
  const JpegInfo turned{640, 480, 3, 6};
  const auto with_size = [&](int width, int height) {
    const ImageEntry entry{ImageId(1), "", width, height};
    return choose_orientation(turned, &entry);
  };
  EXPECT_EQ(choose_orientation(turned, nullptr), 6);
  EXPECT_EQ(with_size(640, 480), 1);
  EXPECT_EQ(with_size(480, 640), 6);
  EXPECT_EQ(with_size(0, 0), 1);
  EXPECT_EQ(message_of<Error>([&] { with_size(100, 50); }),
            "the truth says 100 x 50 pixels, the picture has 640 x 480 (EXIF orientation 6)");
}

}  // namespace
}  // namespace ssd
