// Sets as users have them: other encodings, pictures of other formats, lists and names in other forms, splits
// that do not fit together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/utf8.hpp"
#include "image/jpeg.hpp"
#include "preprocess/pack_runs.hpp"
#include "preprocess/voc.hpp"
#include "record/shard_set.hpp"
#include "support/files.hpp"
#include "support/made_pictures.hpp"

namespace ssd::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class UserSet : public testing::Test {
 protected:
  // A photo of 128 x 128 pixels.
  void add_photo(const fs::path& path) const {
    fs::create_directories(path.parent_path());
    fs::copy_file(kData / "jpeg_nasty/ok/hopper.jpg", path);
  }
  void add_bytes(const fs::path& path, const std::vector<std::byte>& bytes) const {
    write_text(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  // One image and one box.
  static json set_of(const std::string& file_name, const json& categories) {
    return {{"images", {{{"id", 1}, {"file_name", file_name}, {"width", 128}, {"height", 128}}}},
            {"categories", categories},
            {"annotations",
             {{{"id", 1},
               {"image_id", 1},
               {"category_id", categories.at(0).at("id")},
               {"bbox", {10, 10, 20, 20}},
               {"area", 400},
               {"iscrowd", 0}}}}};
  }
  ProgramResult pack(const std::string& split, const json& set,
                     const std::vector<std::string>& more = {}) const {
    const auto annotations = root / (split + ".json");
    write_text(annotations, set.dump());
    return preprocess(std::vector<std::string>{"--split", split, "--annotations", annotations.string(),
                                               "--images", (root / "images").string(), out.string()} +
                      more);
  }
  // A VOC set of one picture; xml: the whole file.
  void add_voc(const std::string& name, const std::string& xml, const std::string& list_line) const {
    write_text(voc / "Annotations" / (name + ".xml"), xml);
    write_text(voc / "ImageSets/Main/train.txt", list_line + "\n");
  }
  static std::string voc_xml(const std::string& head, const std::string& class_name,
                             const std::string& file_name) {
    return head + "<annotation>" + (file_name.empty() ? "" : "<filename>" + file_name + "</filename>") +
           "<size><width>128</width><height>128</height></size><object><name>" + class_name +
           "</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30</xmax><ymax>40</ymax></bndbox></object></"
           "annotation>";
  }
  ProgramResult pack_voc(const std::vector<std::string>& more = {}) const {
    return preprocess(std::vector<std::string>{"--voc", voc.string(), "--split", "train", out.string()} +
                      more);
  }
  std::vector<std::string> class_names() const {
    std::vector<std::string> names;
    for (const auto& category : ShardSet::open(out, Split::train).categories())
      names.push_back(category.name);
    return names;
  }

  TemporaryFolder folder;
  fs::path root = folder.path();
  fs::path voc = root / "voc", out = root / "out";
};

TEST_F(UserSet, U1_xml_is_read_in_the_encoding_that_it_declares) {
  const std::pair<const char*, std::string> encodings[] = {
      {"gb2312", "\xd5\xac\xb0\xaa"}, {"GBK", "\xd5\xac\xb0\xaa"}, {"UTF-8", "宅蔼"}};
  for (const auto& [encoding, name] : encodings) {
    fs::remove_all(voc);
    fs::remove_all(out);
    add_photo(voc / "JPEGImages/a.jpg");
    add_voc("a", voc_xml(std::string("<?xml version=\"1.0\" encoding='") + encoding + "'?>", name, ""), "a");
    const auto result = pack_voc();
    ASSERT_EQ(result.exit_code, 0) << encoding << result.err;
    const auto names = class_names();
    ASSERT_EQ(names.size(), 1U);
    EXPECT_EQ(names[0], "宅蔼") << encoding;
  }
}

TEST_F(UserSet, U1_text_that_is_not_in_its_encoding_is_refused_by_file) {
  add_photo(voc / "JPEGImages/a.jpg");
  const auto file = (voc / "Annotations/a.xml").string();
  const auto error_of = [&](const std::string& xml) {
    add_voc("a", xml, "a");
    const auto result = pack_voc();
    EXPECT_EQ(result.exit_code, 1);
    return last_line(result.err);
  };
  EXPECT_EQ(error_of(voc_xml("", "caf\xe9", "")),
            "error: '" + file + "': it is not UTF-8, and names no other encoding; save it as UTF-8");
  EXPECT_THAT(error_of(voc_xml("<?xml version=\"1.0\" encoding=\"utf-8\"?>", "caf\xe9", "")),
              HasSubstr("not UTF-8"));
  EXPECT_THAT(error_of(voc_xml("<?xml version=\"1.0\" encoding=\"gb2312\"?>", "\xff\xff", "")),
              HasSubstr("it says that it is gb2312, but its byte "));
  EXPECT_THAT(error_of(voc_xml("<?xml version=\"1.0\" encoding=\"martian\"?>", "cat", "")),
              HasSubstr("its encoding 'martian' is not known"));
  add_voc("a", voc_xml("", "cat", ""), "caf\xe9");
  EXPECT_THAT(pack_voc({"--classes", "cat"}).err,
              HasSubstr("train.txt' line 1: 'caf\\xe9' is not UTF-8 text; save the list as UTF-8"));
  const auto classes = pack_voc({"--classes", "caf\xe9"});
  EXPECT_EQ(classes.exit_code, 2);
  EXPECT_THAT(classes.err, HasSubstr("--classes: 'caf\\xe9' is not UTF-8"));
}

TEST_F(UserSet, U2_val_may_have_fewer_classes_than_train_and_no_other) {
  add_photo(root / "images/a.jpg");
  const json cat_dog{{{"id", 1}, {"name", "cat"}}, {{"id", 2}, {"name", "dog"}}};
  ASSERT_EQ(pack("train", set_of("a.jpg", cat_dog)).exit_code, 0);
  EXPECT_EQ(pack("val", set_of("a.jpg", {{{"id", 2}, {"name", "dog"}}})).exit_code, 0);

  const auto other =
      pack("val", set_of("a.jpg", {{{"id", 1}, {"name", "cat"}}, {{"id", 2}, {"name", "bird"}}}));
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err,
              HasSubstr("the val split has the class 'bird' (id 2), which the train split lacks (its id 2 "
                        "is 'dog')"));
  // The other way round: what has been packed lacks nothing.
  fs::remove_all(out);
  ASSERT_EQ(pack("val", set_of("a.jpg", cat_dog)).exit_code, 0);
  EXPECT_EQ(pack("train", set_of("a.jpg", {{{"id", 1}, {"name", "cat"}}})).exit_code, 1);
  EXPECT_EQ(pack("train", set_of("a.jpg", cat_dog)).exit_code, 0);
}

TEST_F(UserSet, U2_ids_that_differ_between_the_splits_are_said) {
  add_photo(root / "images/a.jpg");
  ASSERT_EQ(
      pack("train", set_of("a.jpg", {{{"id", 1}, {"name", "cat"}}, {{"id", 2}, {"name", "dog"}}})).exit_code,
      0);
  const auto moved =
      pack("val", set_of("a.jpg", {{{"id", 11}, {"name", "cat"}}, {{"id", 12}, {"name", "dog"}}}));
  EXPECT_EQ(moved.exit_code, 0);
  EXPECT_THAT(moved.err, HasSubstr("warning: "));
  EXPECT_THAT(moved.err, HasSubstr("'dog' has the id 2 in the train split and 12 in the val split"));
  const auto swapped =
      pack("val", set_of("a.jpg", {{{"id", 1}, {"name", "dog"}}, {{"id", 2}, {"name", "cat"}}}), {"--force"});
  EXPECT_EQ(swapped.exit_code, 0);  // the train split may be replaced next
  EXPECT_THAT(swapped.err,
              HasSubstr("the category id 1 is 'dog' in the val split and 'cat' in the train split"));
  std::filesystem::remove(out / "val.manifest.json");
  EXPECT_EQ(
      pack("val", set_of("a.jpg", {{{"id", 1}, {"name", "dog"}}, {{"id", 2}, {"name", "cat"}}})).exit_code,
      1);
}

TEST_F(UserSet, U5_two_classes_of_one_name_are_said) {
  add_photo(root / "images/a.jpg");
  const auto result =
      pack("train", set_of("a.jpg", {{{"id", 3}, {"name", "cat"}}, {{"id", 9}, {"name", "cat"}}}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err,
              HasSubstr("the categories 3 and 9 have the same name, 'cat'; they are two classes"));
}

TEST_F(UserSet, U6_a_size_that_is_null_is_taken_from_the_picture) {
  add_photo(root / "images/a.jpg");
  auto set = set_of("a.jpg", {{{"id", 1}, {"name", "cat"}}});
  set["images"][0]["width"] = nullptr;
  set["images"][0]["height"] = nullptr;
  const auto result = pack("train", set);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ShardSet::open(out, Split::train).records().at(0).width, 128);
}

TEST_F(UserSet, U6_reasons_are_listed_also_where_nothing_is_left) {
  add_photo(root / "images/a.jpg");
  for (const json& width : {json("120"), json(90.5)}) {
    auto set = set_of("a.jpg", {{{"id", 1}, {"name", "cat"}}});
    set["images"][0]["width"] = width;
    for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--skip-bad"}}) {
      const auto result = pack("train", set, more);
      EXPECT_EQ(result.exit_code, 1);
      EXPECT_THAT(result.err,
                  HasSubstr(": no image in it that can be used; what is wrong is listed above\n"));
      EXPECT_THAT(result.err,
                  HasSubstr("images[0] (id 1): width is " + width.dump() + ", but must be a whole number"));
    }
  }
}

TEST_F(UserSet, U7_voc_pictures_are_found_by_file_name_and_by_any_ending) {
  const std::pair<const char*, const char*> cases[] = {{"a.JPG", ""},
                                                       {"a.jpeg", ""},
                                                       {"a.Jpeg", "a"},
                                                       {"other name.jpg", "other name.jpg"},
                                                       {"a.jpg", "C:\\photos\\a.jpg"}};
  for (const auto& [file, called] : cases) {
    fs::remove_all(voc);
    fs::remove_all(out);
    add_photo(voc / "JPEGImages" / file);
    add_voc("a", voc_xml("", "cat", called), "a");
    const auto result = pack_voc();
    EXPECT_EQ(result.exit_code, 0) << file << ' ' << called << '\n' << result.err;
  }
  fs::remove_all(voc);
  add_voc("a", voc_xml("", "cat", "b.jpg"), "a");
  fs::create_directories(voc / "JPEGImages");
  EXPECT_THAT(
      last_line(pack_voc({"--force"}).err),
      HasSubstr(
          "(looked for what <filename> says, and for 'a' with .jpg, .jpeg, .png, .webp, .bmp in any case)"));
}

TEST_F(UserSet, U8_lists_may_name_images_with_folders_endings_and_blanks) {
  for (const char* line :
       {"a.jpg", "a.JPG  \t", "JPEGImages/a.jpg\r", "./a", "C:\\set\\a.png", "a 1", "a.xml",
        "\xef\xbb\xbf"
        "a"}) {
    fs::remove_all(voc);
    fs::remove_all(out);
    add_photo(voc / "JPEGImages/a.jpg");
    add_voc("a", voc_xml("", "cat", ""), line);
    const auto result = pack_voc();
    EXPECT_EQ(result.exit_code, 0) << line << '\n' << result.err;
  }
  fs::remove_all(voc);
  fs::remove_all(out);
  add_photo(voc / "JPEGImages/img 1.jpg");
  add_photo(voc / "JPEGImages/img 2.jpg");
  add_voc("img 1", voc_xml("", "cat", ""), "");
  add_voc("img 2", voc_xml("", "cat", ""), "img 1.jpg\n\nimg 2.jpg  -1");
  const auto result = pack_voc();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ShardSet::open(out, Split::train).records().size(), 2U);
  write_text(voc / "ImageSets/Main/train.txt", "img 1\nimg 2\nimg 1.jpg\n");
  EXPECT_THAT(pack_voc({"--force"}).err, HasSubstr("train.txt' line 3: 'img 1' is in line 1 already"));
}

TEST_F(UserSet, U14_backslashes_in_file_names_are_slashes_where_the_file_is_found_so) {
  add_photo(root / "images/day 1/a.jpg");
  const auto result = pack("train", set_of("day 1\\a.jpg", {{{"id", 1}, {"name", "cat"}}}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  // A file whose name really has one.
  fs::remove_all(out);
  add_photo(root / "images/b\\c.jpg");
  EXPECT_EQ(pack("train", set_of("b\\c.jpg", {{{"id", 1}, {"name", "cat"}}})).exit_code, 0);
}

TEST_F(UserSet, U12_png_webp_and_bmp_are_packed_as_jpeg_and_counted) {
  const auto images = root / "images";
  std::vector<std::uint8_t> rgba(128 * 96 * 4);
  for (std::size_t i = 0; i < rgba.size(); ++i)
    rgba[i] =
        static_cast<std::uint8_t>(i % 4 == 3 ? (i / 4 % 128 < 20 ? 0 : 255) : i / 4 % 128 + 40 * (i % 4));
  std::vector<std::uint8_t> gray16(128 * 96 * 2);
  for (std::size_t i = 0; i < gray16.size(); i += 2) gray16[i] = static_cast<std::uint8_t>(i / 2 % 128);
  std::vector<std::uint8_t> bgr(128 * 96 * 3, 90);
  add_bytes(images / "alpha.png", make_png({128, 96, 8, PNG_COLOR_TYPE_RGBA, rgba}));
  add_bytes(images / "deep.jpg",
            make_png({128, 96, 16, PNG_COLOR_TYPE_GRAY, gray16}));  // whatever its name says
  add_bytes(images / "turned.webp", make_webp(128, 96, rgba, exif_of(6)));
  add_bytes(images / "plain.bmp", make_bmp(128, 96, 24, bgr));
  add_photo(images / "photo.jpg");
  json set = set_of("photo.jpg", {{{"id", 1}, {"name", "cat"}}});
  int id = 2;
  for (const char* name : {"alpha.png", "deep.jpg", "turned.webp", "plain.bmp"}) {
    const bool is_turned = std::string(name) == "turned.webp";
    set["images"].push_back({{"id", id++},
                             {"file_name", name},
                             {"width", is_turned ? 96 : 128},
                             {"height", is_turned ? 128 : 96}});
  }
  const auto result = pack("train", set);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("4 images converted to JPEG of quality 95 (2 PNG, 1 WebP, 1 BMP)"));
  EXPECT_THAT(result.out, HasSubstr("2 images with transparent pixels, laid over white"));
  EXPECT_THAT(result.out, HasSubstr("1 gray images"));
  EXPECT_THAT(preprocess({"--info", out.string()}).out, HasSubstr("(2 PNG, 1 WebP, 1 BMP)"));

  const auto packed = ShardSet::open(out, Split::train);
  ASSERT_EQ(packed.records().size(), 5U);
  std::vector<std::byte> bytes;
  const auto decoded = [&](std::size_t i) {
    const auto jpeg = packed.read_jpeg(packed.records()[i], bytes);
    RgbImage image;
    EXPECT_EQ(JpegDecoder().decode(jpeg, image), 0);
    return image;
  };
  const RgbImage alpha = decoded(1);
  EXPECT_EQ(alpha.width, 128);
  // Quality 95 keeps flat areas to a few levels; the left part is white.
  EXPECT_NEAR(alpha.pixels[(48 * 128 + 5) * 3], 255, 4);
  EXPECT_NEAR(alpha.pixels[(48 * 128 + 80) * 3], 80, 6);
  const RgbImage deep = decoded(2);
  EXPECT_NEAR(deep.pixels[(48 * 128 + 100) * 3], 100, 4);
  EXPECT_EQ(packed.records()[3].width, 96);  // upright
  EXPECT_EQ(packed.records()[3].height, 128);
  EXPECT_NEAR(decoded(4).pixels[0], 90, 2);

  const auto verified = preprocess({"--verify", out.string()});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
}

TEST_F(UserSet, U12_other_formats_are_refused_by_name) {
  write_text(root / "images/a.jpg", std::string("\0\0\0\x18"
                                                "ftypheic\0\0\0\0",
                                                16));
  const auto result = pack("train", set_of("a.jpg", {{{"id", 1}, {"name", "cat"}}}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("(image 1): a HEIC picture; JPEG, PNG, WebP and BMP are read"));
}

}  // namespace
}  // namespace ssd::test
