// The program ssd_preprocess as its users run it: exit codes, lines, and sets that read back as what went in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "coco/annotations.hpp"
#include "core/error.hpp"
#include "image/jpeg.hpp"
#include "preprocess/check_image.hpp"
#include "preprocess/pack_runs.hpp"
#include "record/shard_data.hpp"
#include "record/shard_file.hpp"
#include "record/shard_set.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using namespace test;
using testing::EndsWith;
using testing::HasSubstr;

void expect_equal_to_source(const ShardSet& set, const AnnotationSet& source, const fs::path& images,
                            StoredJpeg stored = StoredJpeg::anew) {
  ASSERT_EQ(set.records().size(), source.images.size());
  ASSERT_EQ(set.categories().size(), source.categories.size());
  for (std::size_t i = 0; i < source.categories.size(); ++i) {
    EXPECT_EQ(set.categories()[i].id, source.categories[i].id);
    EXPECT_EQ(set.categories()[i].name, source.categories[i].name);
  }
  std::map<ImageId, std::vector<const Annotation*>> annotations;
  for (const auto& annotation : source.annotations) annotations[annotation.image_id].push_back(&annotation);
  std::vector<std::byte> buffer;
  std::vector<std::uint32_t> restarts;
  JpegDecoder decoder;
  RgbImage expected_pixels, pixels;
  for (std::size_t i = 0; i < source.images.size(); ++i) {
    const auto& record = set.records()[i];
    EXPECT_EQ(record.image_id, source.images[i].id);
    EXPECT_EQ(record.file_name, source.images[i].file_name);
    EXPECT_EQ(record.width, source.images[i].width);
    EXPECT_EQ(record.height, source.images[i].height);
    EXPECT_EQ(record.orientation, 1);
    const auto jpeg = set.read_jpeg(record, buffer);
    set.read_restarts(record, restarts);
    const auto file = bytes_of(images / record.file_name);
    if (stored == StoredJpeg::original) {
      EXPECT_TRUE(std::ranges::equal(jpeg, file)) << record.file_name;
      EXPECT_TRUE(restarts.empty());
    } else {
      decoder.decode(file, expected_pixels);
      EXPECT_EQ(decoder.decode(jpeg, pixels), 0);
      EXPECT_TRUE(pixels.pixels == expected_pixels.pixels) << record.file_name;
      EXPECT_GT(restarts.size(), 1U);
    }
    const auto& expected = annotations[record.image_id];
    const auto packed = set.annotations_of(record);
    ASSERT_EQ(packed.size(), expected.size());
    for (std::size_t k = 0; k < packed.size(); ++k) {
      EXPECT_EQ(packed[k].id, expected[k]->id);
      EXPECT_EQ(packed[k].category_id, expected[k]->category_id);
      EXPECT_EQ(packed[k].bbox_xywh, expected[k]->bbox_xywh);
      EXPECT_EQ(packed[k].area, expected[k]->area);
      EXPECT_EQ(packed[k].is_crowd, expected[k]->is_crowd);
      EXPECT_EQ(&source.annotations[packed[k].json_order], expected[k]);
    }
  }
}

class Preprocess : public testing::Test {
 protected:
  // Sets made here: one category (7, "cell"), images as given, pictures copied from the test data.
  void add_image(std::int64_t id, const std::string& file, const std::optional<std::array<int, 2>>& size,
                 const fs::path& picture = {}) {
    json image{{"id", id}, {"file_name", file}};
    if (size) image["width"] = (*size)[0], image["height"] = (*size)[1];
    coco["images"].push_back(image);
    fs::create_directories(images);
    if (!picture.empty()) fs::copy_file(kData / picture, images / file, fs::copy_options::overwrite_existing);
  }
  void add_box(std::int64_t id, std::int64_t image, std::array<double, 4> box) {
    coco["annotations"].push_back(
        {{"id", id}, {"image_id", image}, {"category_id", 7}, {"bbox", box}, {"area", 1}, {"iscrowd", 0}});
  }
  void add_good_image() {
    add_image(1, "good.jpg", {{128, 128}}, "jpeg_nasty/ok/hopper.jpg");
    add_box(1, 1, {10, 10, 20, 20});
  }
  ProgramResult pack(const std::string& split = "train", std::vector<std::string> more = {}) {
    write_text(json_path, coco.dump());
    more.insert(more.end(), {"--split", split, "--annotations", json_path.string(), "--images",
                             images.string(), out.string()});
    return preprocess(more);
  }

  TemporaryFolder temporary;
  fs::path out = temporary.path() / "out";
  fs::path images = temporary.path() / "images";
  fs::path json_path = temporary.path() / "a.json";
  json coco{{"categories", json::array({{{"id", 7}, {"name", "cell"}}})},
            {"images", json::array()},
            {"annotations", json::array()}};
};

TEST_F(Preprocess, a_packed_set_reads_back_as_what_went_in) {
  for (const auto* split : {"train", "val"}) {
    const auto result = preprocess(bccd(split, out));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(files_of(out).size(), 4U);
  const auto train = ShardSet::open(out, Split::train);
  expect_equal_to_source(train, read_annotations(kBccd / "coco/instances_train.json"), kBccd / "JPEGImages");
  const auto val = ShardSet::open(out, Split::val);
  expect_equal_to_source(val, read_annotations(kBccd / "coco/instances_val.json"), kBccd / "JPEGImages");
}

TEST_F(Preprocess, the_files_do_not_depend_on_the_number_of_threads_or_the_places) {
  auto one = bccd("train", out);
  one.insert(one.end(), {"--threads", "1", "--shard-size", "1MB"});
  auto three = bccd("train", temporary.path() / "three");
  three.insert(three.end(), {"--threads", "3", "--shard-size", "1000kB"});
  fs::copy(kBccd / "JPEGImages", temporary.path() / "pictures");
  three[5] = (temporary.path() / "pictures").string();
  EXPECT_EQ(preprocess(one).exit_code, 0);
  EXPECT_EQ(preprocess(three).exit_code, 0);
  const auto files = files_of(out);
  EXPECT_EQ(files.size(), 6U);
  EXPECT_TRUE(files == files_of(temporary.path() / "three"));
  const auto set = ShardSet::open(out, Split::train);
  expect_equal_to_source(set, read_annotations(kBccd / "coco/instances_train.json"), kBccd / "JPEGImages");
  std::map<std::uint32_t, std::uint64_t> bytes;
  for (const auto& record : set.records()) bytes[record.shard] += record.byte_count;
  for (const auto& [shard, count] : bytes) EXPECT_LE(count, 1'000'000U) << shard;
}

TEST_F(Preprocess, a_coco_folder_gives_both_splits) {
  const auto result = preprocess({(kData / "coco_free").string(), out.string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("train: 7 images, "));
  EXPECT_THAT(result.out, HasSubstr("\nval: 5 images, "));
  for (const auto split : {Split::train, Split::val}) {
    const auto name = fmt::format("{}2017", split_name(split));
    expect_equal_to_source(
        ShardSet::open(out, split),
        read_annotations(kData / fmt::format("coco_free/annotations/instances_{}.json", name)),
        kData / "coco_free" / name);
  }
}

TEST_F(Preprocess, T2_01_T2_03_T2_04_T2_05_T2_06_T2_09_T2_10_T2_16_the_summary_counts_what_was_packed) {
  add_good_image();
  add_image(2, "gray.jpg", {{128, 128}}, "jpeg_nasty/ok/hopper_gray.jpg");
  add_image(3, "turned.jpg", {{1, 2}}, "jpeg_nasty/exif/orientation8_2x1.jpg");
  add_image(4, "unsized.jpg", {}, "jpeg_nasty/ok/ycck_100x100.jpg");
  add_image(5, "warned.jpg", {{16, 16}}, "jpeg_nasty/warn/extraneous-data.jpg");
  add_box(2, 1, {10, 10, 0, 20});
  add_box(3, 1, {128, 10, 5, 5});
  add_box(4, 1, {10, 10, 20, 20});
  coco["annotations"].push_back({{"id", 5}, {"image_id", 2}, {"category_id", 7}, {"bbox", {1, 1, 2, 2}}});
  coco["annotations"].push_back(
      {{"id", 6}, {"image_id", 2}, {"category_id", 7}, {"bbox", {1, 1, 3, 3}}, {"area", 9}, {"iscrowd", 1}});
  const auto result = pack();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            fmt::format("train: 5 images, 6 boxes, 23.2 kB of JPEG data in 1 shard in '{}'\n"
                        "          3 images without boxes\n"
                        "          1 crowd boxes\n"
                        "          2 boxes not for training (1 of no size, 1 outside the image)\n"
                        "          1 gray images\n"
                        "          1 CMYK images\n"
                        "          1 images turned as EXIF says\n"
                        "          1 images whose size the JSON does not give: taken from the picture\n"
                        "          1 images that decode with warnings\n"
                        "          1 boxes that repeat another one of their image and class\n"
                        "          1 annotations without area: width x height is taken\n"
                        "          1 annotations without iscrowd: 0 is taken\n"
                        "          4 images encoded anew without loss: 41.8 kB became 22.8 kB (-45.6 %)\n"
                        "          1 images stored as they are: 0.4 kB\n"
                        "          6 boxes by area: 6 small, 0 medium, 0 large (32^2, 96^2 pixels)\n"
                        "          1 classes; boxes of each:\n"
                        "          6 cell  (label 1, category id 7) {}\n",
                        out.string(), std::string(40, '#')));
  const auto counts = json::parse(text_of(out / "train.manifest.json")).at("counts");
  EXPECT_EQ(counts.at("boxes"), 6);
  EXPECT_EQ(counts.at("missing_area"), 1);
  EXPECT_EQ(counts.at("turned_images"), 1);
  const auto set = ShardSet::open(out, Split::train);
  const auto boxes = set.annotations_of(set.records()[0]);
  ASSERT_EQ(boxes.size(), 4U);
  EXPECT_TRUE(boxes[0].is_trainable);
  EXPECT_FALSE(boxes[1].is_trainable);
  EXPECT_FALSE(boxes[2].is_trainable);
  EXPECT_TRUE(boxes[3].is_trainable);
  EXPECT_EQ(set.records()[2].orientation, 8);
  EXPECT_EQ(set.records()[2].width, 1);
  EXPECT_EQ(set.records()[3].width, 100);
  EXPECT_EQ(set.records()[4].decode_warnings, 1U);
  const auto data = read_shard(out / "train-00000-of-00001.h5").data;
  EXPECT_EQ(data.image_flags,
            (std::vector<std::uint32_t>{kImageEncodedAnew, kImageGray | kImageEncodedAnew, kImageEncodedAnew,
                                        kImageCmyk | kImageSizeFromPicture | kImageEncodedAnew, 0}));
  EXPECT_EQ(data.stored_widths[2], 2);
  EXPECT_EQ(data.source_orientations[2], 8);
}

TEST_F(Preprocess, T1_03_T1_04_labels_follow_the_order_of_the_category_list) {
  add_good_image();
  coco["categories"] =
      json::array({{{"id", 13}, {"name", "a"}}, {{"id", 7}, {"name", "b"}}, {{"id", 0}, {"name", "c"}}});
  coco["annotations"].push_back(
      {{"id", 9}, {"image_id", 1}, {"category_id", 0}, {"bbox", {1, 1, 2, 2}}, {"area", 4}, {"iscrowd", 0}});
  ASSERT_EQ(pack().exit_code, 0);
  const auto set = ShardSet::open(out, Split::train);
  const auto boxes = set.annotations_of(set.records()[0]);
  EXPECT_EQ(boxes[0].label, Label(2));
  EXPECT_EQ(boxes[1].label, Label(3));
}

TEST_F(Preprocess, T2_07_T2_11_T2_12_T2_14_everything_bad_is_listed_and_nothing_is_written) {
  add_good_image();
  add_image(2, "gone.jpg", {{5, 5}});
  add_image(3, "empty.jpg", {{5, 5}}, "jpeg_nasty/reject/empty.jpg");
  write_text(images / "gif.jpg", "GIF89a");
  add_image(4, "gif.jpg", {{6, 6}});
  add_image(5, "cut.jpg", {{227, 149}}, "jpeg_nasty/warn/trunc3000_testorig.jpg");
  add_image(6, "size.jpg", {{149, 227}}, "jpeg_nasty/ok/testorig.jpg");
  add_image(7, "", {{5, 5}});
  fs::create_directories(images / "folder.jpg");
  add_image(8, "folder.jpg", {{5, 5}});
  coco["annotations"].push_back({{"id", 3}, {"image_id", 99}, {"category_id", 7}, {"bbox", {1, 1, 2, 2}}});
  const auto result = pack();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  const auto in = images.string();
  EXPECT_EQ(
      result.err,
      fmt::format(
          "train: reading '{1}'\n"
          "train: 1 annotations of an image that is not in the file:\n"
          "  '{1}': annotations[1] (id 3): image_id 99 is not among the images\n"
          "train: 2 images whose file is missing:\n"
          "  '{0}/gone.jpg' (image 2): missing\n"
          "  '{0}/' (image 7): the JSON gives no file_name\n"
          "train: 2 images that cannot be decoded:\n"
          "  '{0}/empty.jpg' (image 3): an empty file\n"
          "  '{0}/gif.jpg' (image 4): a GIF picture; JPEG, PNG, WebP and BMP are read\n"
          "train: 1 images that are cut off:\n"
          "  '{0}/cut.jpg' (image 5): its 3000 bytes end before the picture does\n"
          "train: 1 images whose size is not the JSON's:\n"
          "  '{0}/size.jpg' (image 6): the JSON says 149 x 227, the picture has 227 x 149 (EXIF "
          "orientation 1)\n"
          "train: 1 images whose file cannot be read:\n"
          "  '{0}/folder.jpg' (image 8): not a file\n"
          "error: train: 8 problems in the input, listed above; nothing was written; mend them, or leave "
          "out what is bad with --skip-bad\n",
          in, json_path.string()));
  EXPECT_TRUE(fs::is_empty(out));
}

TEST_F(Preprocess, skip_bad_leaves_out_train_images_and_keeps_val_images_without_a_picture) {
  add_good_image();
  add_image(2, "cut.jpg", {{227, 149}}, "jpeg_nasty/warn/trunc3000_testorig.jpg");
  add_box(2, 2, {1, 2, 3, 4});
  EXPECT_EQ(pack("train", {"--skip-bad"}).exit_code, 0);
  EXPECT_EQ(pack("val", {"--skip-bad"}).exit_code, 0);
  EXPECT_EQ(ShardSet::open(out, Split::train).records().size(), 1U);
  const auto left_out = json::parse(text_of(out / "train.manifest.json")).at("left_out");
  EXPECT_EQ(
      left_out,
      json::array({{{"image_id", 2}, {"file_name", "cut.jpg"}, {"reason", "images that are cut off"}}}));
  const auto val = ShardSet::open(out, Split::val);
  ASSERT_EQ(val.records().size(), 2U);
  EXPECT_TRUE(val.records()[1].is_bad);
  EXPECT_EQ(val.records()[1].width, 227);
  EXPECT_EQ(val.annotations_of(val.records()[1])[0].id, 2);
}

TEST_F(Preprocess, T4_10_a_set_of_other_input_stays_unless_force_is_given) {
  add_good_image();
  ASSERT_EQ(pack().exit_code, 0);
  const auto before = files_of(out);
  const auto again = pack();
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(
      last_line(again.err),
      EndsWith("holds these shards already (same annotations, file names, sizes and options); --force packs "
               "them again"));
  add_box(2, 1, {1, 1, 5, 5});
  const auto refused = pack();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(
      last_line(refused.err),
      fmt::format(
          "error: train: '{}' holds other train shards, made from another input or with other options, or "
          "damaged; --force replaces them",
          out.string()));
  EXPECT_TRUE(files_of(out) == before);
  EXPECT_EQ(pack("train", {"--force"}).exit_code, 0);
  const auto set = ShardSet::open(out, Split::train);
  EXPECT_EQ(set.annotations_of(set.records()[0]).size(), 2U);
}

TEST_F(Preprocess, force_that_fails_leaves_the_old_set) {
  add_good_image();
  ASSERT_EQ(pack().exit_code, 0);
  const auto before = files_of(out);
  add_image(2, "gone.jpg", {{5, 5}});
  EXPECT_EQ(pack("train", {"--force"}).exit_code, 1);
  EXPECT_TRUE(files_of(out) == before);
}

TEST_F(Preprocess, T2_12_a_wrong_images_folder_is_recognised) {
  add_image(1, "good.jpg", {{128, 128}}, "jpeg_nasty/ok/hopper.jpg");
  add_image(2, "gone.jpg", {{5, 5}});
  const auto right = images;
  images = temporary.path();
  EXPECT_EQ(last_line(pack().err),
            fmt::format("error: train: 0 of 2 images found in '{}'; did you mean '{}'?", images.string(),
                        right.string()));
  images = temporary.path() / "nowhere" / "deep";
  EXPECT_EQ(
      last_line(pack().err),
      fmt::format("error: train: 0 of 2 images found in '{}' (looked for 'good.jpg')", images.string()));
}

TEST_F(Preprocess, a_failed_split_does_not_keep_the_other_from_being_packed) {
  const auto coco_folder = temporary.path() / "coco";
  fs::copy(kData / "coco_free", coco_folder, fs::copy_options::recursive);
  fs::resize_file(coco_folder / "train2017/000000000086.jpg", 20'000);
  const auto result = preprocess({coco_folder.string(), out.string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("error: train: 1 problems in the input"));
  EXPECT_THROW(ShardSet::open(out, Split::train), Error);
  EXPECT_EQ(ShardSet::open(out, Split::val).records().size(), 5U);
}

TEST_F(Preprocess, T2_02_T2_15_corners_in_place_of_sizes_and_repeated_ids_are_warned_of) {
  add_good_image();
  add_box(1, 1, {100, 100, 120, 120});
  const auto result = pack();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err,
              HasSubstr("warning: train: 1 of 2 boxes leave their image: does the JSON hold corners "
                        "(x1 y1 x2 y2)? bbox is left, top, width, height\n"));
  EXPECT_THAT(result.err,
              HasSubstr("warning: train: 1 annotations use an id that was used before (the first is 1): "));
}

struct BadCommand {
  std::vector<std::string> arguments;
  int exit_code;
  std::string line;
};

TEST_F(Preprocess, bad_commands_end_with_one_line_and_the_right_code) {
  const auto nowhere = (temporary.path() / "nowhere").string();
  const auto empty = (temporary.path() / "empty").string();
  fs::create_directories(empty);
  write_text(temporary.path() / "bad.json", "{\"images\": [}");
  const std::string see = "; see ssd_preprocess --help";
  const std::vector<BadCommand> commands{
      {{}, 2, "error: 0 paths given; expected COCO and OUT" + see},
      {{"a"}, 2, "error: 1 paths given; expected COCO and OUT" + see},
      {{"a", "b", "c"}, 2, "error: 3 paths given; expected COCO and OUT" + see},
      {{"--thr", "3", "a", "b"}, 2, "error: unrecognised option '--thr'" + see},
      {{"--threads", "-5", "a", "b"}, 2, "error: --threads '-5': a number from 1 to 1024"},
      {{"--threads", "0", "a", "b"}, 2, "error: --threads '0': a number from 1 to 1024"},
      {{"--threads", "2x", "a", "b"}, 2, "error: --threads '2x': a number from 1 to 1024"},
      {{"--threads"}, 2, "error: the required argument for option '--threads' is missing" + see},
      {{"--shard-size", "1k", "a", "b"}, 2, "error: --shard-size '1k': a number of bytes such as 256MiB"},
      {{"--shard-size", "1K", "a", "b"}, 2, "error: --shard-size '1K': from 4 KiB to 64 GiB"},
      {{"--split", "test", "a", "b"}, 2, "error: --split 'test': train or val"},
      {{"--annotations", "x.json", "b"}, 2, "error: --annotations, --images and --split go together" + see},
      {{"--annotations", "x", "--images", "y", "--split", "val", "a", "b"},
       2,
       "error: 2 paths given; with --annotations only OUT is expected" + see},
      {{nowhere, out.string()}, 1, fmt::format("error: no folder '{}'", nowhere)},
      {{empty, out.string()},
       1,
       fmt::format(
           "error: '{}' is not laid out as COCO (no annotations/instances_train2017.json, no "
           "annotations/instances_val2017.json); name the parts with --split, --annotations and --images",
           empty)},
      {{"--split", "val", empty, out.string()},
       1,
       fmt::format("error: no file '{}/annotations/instances_val2017.json'", empty)},
  };
  for (const auto& [arguments, exit_code, line] : commands) {
    const auto result = preprocess(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << line;
    EXPECT_EQ(last_line(result.err), line);
    EXPECT_EQ(result.out, "");
  }
  const auto broken = preprocess({"--split", "val", "--annotations", (temporary.path() / "bad.json").string(),
                                  "--images", empty, out.string()});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(last_line(broken.err), HasSubstr("bad.json"));
}

TEST_F(Preprocess, T4_07_help_and_version_go_to_stdout) {
  const auto help = preprocess({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  for (const auto* option :
       {"--split train|val", "--annotations FILE", "--images DIR", "--shard-size BYTES (=256MiB)",
        "--threads N", "--skip-bad", "--force", "--version"})
    EXPECT_THAT(help.out, HasSubstr(option));
  const auto version = preprocess({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out,
              testing::MatchesRegex("ssd_preprocess [0-9.]+ \\(shard format 1, HDF5 [0-9.]+.*\\)\n"));
}

}  // namespace
}  // namespace ssd
