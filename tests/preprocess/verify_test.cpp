// ssd_preprocess --verify and --info on sets that are whole, damaged, mixed up, or not of their source.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/random.hpp"
#include "image/jpeg.hpp"
#include "preprocess/pack_runs.hpp"
#include "preprocess/pack_shard.hpp"
#include "record/file_names.hpp"
#include "record/manifest.hpp"
#include "record/set_folder.hpp"
#include "record/shard_file.hpp"
#include "record/shard_set.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using namespace test;
using nlohmann::json;
using testing::HasSubstr;

class Verify : public testing::Test {
 protected:
  Verify() {
    const auto result = preprocess(bccd("val", out) + std::vector<std::string>{"--shard-size", "500kB"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(fs::exists(shard(3)));
  }

  fs::path shard(int index) const { return out / fmt::format("val-0000{}-of-00004.h5", index); }
  void flip(const fs::path& path, std::size_t offset) const {
    auto text = text_of(path);
    text[offset] ^= 16;
    write_text(path, text);
  }
  ProgramResult verify(const std::vector<std::string>& more = {}) const {
    return preprocess(std::vector<std::string>{"--verify"} +
                      (more.empty() ? std::vector{out.string()} : more));
  }
  // The lines of a failed verification of OUT.
  std::string complaint(const std::vector<std::string>& more = {}) const {
    const auto result = verify(more);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    return result.err;
  }
  std::string last_error(int problems) const {
    return fmt::format(
        "error: val: '{}': {} problems, listed above; copy the files again or run ssd_preprocess again\n",
        out.string(), problems);
  }

  TemporaryFolder temporary;
  fs::path out = temporary.path() / "out";
};

TEST_F(Verify, a_whole_set_is_ok_alone_and_beside_its_source) {
  const auto digest = ShardSet::open(out, Split::val).digest().hex();
  EXPECT_EQ(
      verify().out,
      fmt::format("val: ok: 87 images in 4 shards, digests and pictures are whole; set digest {}\n", digest));
  const auto with_source = verify(bccd("val", out));
  EXPECT_EQ(with_source.exit_code, 0) << with_source.err;
  EXPECT_EQ(
      with_source.out,
      fmt::format(
          "val: ok: 87 images in 4 shards, digests and pictures are whole, and as in '{}'; set digest {}\n",
          (kBccd / "coco/instances_val.json").string(), digest));
  const auto on_ranks = preprocess_on_ranks(3, std::vector<std::string>{"--verify"} + bccd("val", out));
  EXPECT_EQ(on_ranks.exit_code, 0) << on_ranks.err;
  EXPECT_EQ(on_ranks.out, with_source.out);
}

TEST_F(Verify, all_damaged_pictures_are_named_with_shard_and_record) {
  const auto set = ShardSet::open(out, Split::val);
  const auto& first = set.records()[5];
  const auto& last = set.records()[86];
  flip(shard(static_cast<int>(first.shard)), first.byte_offset + first.byte_count / 2);
  flip(shard(static_cast<int>(last.shard)), last.byte_offset + last.byte_count / 2);
  std::size_t place = 0;  // of the last one in its shard
  for (const auto& record : set.records()) place += record.shard == last.shard;
  const auto line = [&](const Record& record, std::size_t i) {
    return fmt::format("  shard '{}': the picture of image {} ('{}') at byte {} (record {})\n",
                       shard(static_cast<int>(record.shard)).string(), record.image_id.value(),
                       record.file_name, record.byte_offset, i);
  };
  EXPECT_EQ(complaint(),
            "val: 2 damaged pictures (CRC-32):\n" + line(first, 5) + line(last, place - 1) + last_error(2));
}

TEST_F(Verify, shards_that_are_cut_off_exchanged_or_missing_are_named) {
  fs::resize_file(shard(2), 4000);
  EXPECT_THAT(complaint(),
              HasSubstr(fmt::format("val: 1 shards that cannot be used:\n  shard '{}': 4000 bytes, the "
                                    "manifest says ",
                                    shard(2).string())));
  fs::remove(shard(2));
  EXPECT_THAT(complaint(), HasSubstr(fmt::format("shard '{}': missing; copy it again", shard(2).string())));
  fs::rename(shard(0), shard(2));
  fs::rename(shard(1), shard(0));
  fs::rename(shard(2), shard(1));
  const auto said = complaint();
  for (const int index : {0, 1, 2})
    EXPECT_THAT(said, HasSubstr(fmt::format("  shard '{}': ", shard(index).string())));
  EXPECT_THAT(said, HasSubstr(last_error(3)));
}

// Where the reader gives what was written, --verify may say ok; else both name the shard.
TEST_F(Verify, a_flipped_byte_anywhere_is_told_or_changes_nothing) {
  const auto expected = files_of(out);
  const int flips = std::getenv("SSD_TEST_LONG") != nullptr ? 300 : 10;
  RandomStream random(5, RandomPurpose::test, 0, 0);
  const auto whole = ShardSet::open(out, Split::val);
  int told = 0;
  for (int i = 0; i < flips; ++i) {
    const auto index = static_cast<int>(random.below(4));
    const auto offset = random.below(static_cast<std::uint32_t>(fs::file_size(shard(index))));
    SCOPED_TRACE(fmt::format("shard {}, byte {}", index, offset));
    flip(shard(index), offset);
    const auto result = verify();
    if (result.exit_code != 0) {
      EXPECT_EQ(result.exit_code, 1);
      EXPECT_THAT(result.err, HasSubstr(shard(index).filename().string()));
      ++told;
    } else {
      const auto set = ShardSet::open(out, Split::val);
      std::vector<std::byte> a, b;
      for (std::size_t k = 0; k < set.records().size(); ++k) {
        ASSERT_TRUE(
            std::ranges::equal(set.read_jpeg(set.records()[k], a), whole.read_jpeg(whole.records()[k], b)));
      }
    }
    write_text(shard(index), expected.at(shard(index).filename().string()));
  }
  EXPECT_GT(told, flips / 2);
}

TEST_F(Verify, a_source_that_is_another_now_is_told) {
  const auto source = json::parse(text_of(kBccd / "coco/instances_val.json"));
  const auto images = temporary.path() / "images";
  fs::copy(kBccd / "JPEGImages", images);
  const auto json_path = temporary.path() / "a.json";
  const auto complaint_about = [&](const json& changed) {
    write_text(json_path, changed.dump());
    return complaint(
        {"--split", "val", "--annotations", json_path.string(), "--images", images.string(), out.string()});
  };
  auto changed = source;
  changed["annotations"][3]["bbox"][2] = 7.25;
  const auto image_id = changed["annotations"][3]["image_id"].get<int>();
  const auto said = complaint_about(changed);
  EXPECT_THAT(said, HasSubstr("val: 1 records that are not as in the source:\n"));
  EXPECT_THAT(said, HasSubstr(fmt::format("image {}: annotation {}: bbox [", image_id,
                                          changed["annotations"][3]["id"].get<int>())));
  EXPECT_THAT(said, HasSubstr(", 7.25, "));

  changed = source;
  changed["images"].push_back({{"id", 99999}, {"file_name", "x.jpg"}, {"width", 5}, {"height", 5}});
  EXPECT_THAT(complaint_about(changed), HasSubstr("val: 1 sets that were made from another source:\n"));

  const auto name = source["images"][4]["file_name"].get<std::string>();
  flip(images / name, 3000);
  EXPECT_THAT(complaint_about(source),
              HasSubstr(fmt::format("val: 1 pictures whose file is not the one that was "
                                    "packed:\n  '{}' (image {})\n",
                                    (images / name).string(), source["images"][4]["id"].get<int>())));
}

// Sets whose digests are right and whose records are all as in the source: what is wrong is which there are.
class VerifyCounts : public testing::Test {
 protected:
  VerifyCounts() {
    PackOptions options;
    options.limit = 6;
    plan = make_plan(source, measure_files(source, 1, MpiComm()), options);
  }
  // Packs the plan's images in shards of three, with the identity that the plan had, and verifies them.
  ProgramResult verify(const PackPlan& changed, const json& left_out = json::array(), int ranks = 1) const {
    auto planned = changed;
    planned.first_images = {0, 3, planned.images.size()};
    SetFolder folder(out, Split::val);
    Manifest manifest{Split::val, planned.identity, {}, {}};
    for (const std::uint32_t index : {0U, 1U}) {
      const auto path = folder.temporary_path(index, 2);
      pack_shard({source, planned, 1, [] {}}, index, WriteShard::yes, path);
      const auto shard = read_shard(path);
      manifest.shards.push_back({shard_file_name({Split::val, index, 2}), fs::file_size(path),
                                 shard.data.image_ids.size(), shard.data.annotation_ids.size(),
                                 shard.digest.hex()});
    }
    manifest.set_digest = set_digest_of(manifest).hex();
    nlohmann::ordered_json more;
    more["options"] = nlohmann::ordered_json::parse(plan.options.text());
    more["left_out"] = left_out;
    folder.publish(manifest.shards, manifest_text(manifest, more));
    const auto arguments = std::vector<std::string>{"--verify"} + bccd("val", out);
    return ranks == 1 ? preprocess(arguments) : preprocess_on_ranks(ranks, arguments);
  }
  void expect_complaint(const ProgramResult& result, std::size_t place, int times, int expected) const {
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err,
                HasSubstr(fmt::format("val: 1 images that are not as often in the set as they should be:\n"
                                      "  image {}: {} times, not {}\n",
                                      source.set.images[place].id.value(), times, expected)));
  }

  TemporaryFolder temporary;
  fs::path out = temporary.path() / "out";
  SourceSet source = read_source_set(
      {Split::val, kBccd / "coco/instances_val.json", kBccd / "JPEGImages", std::nullopt}, MpiComm());
  PackPlan plan;
};

TEST_F(VerifyCounts, each_image_once_is_right) {
  const auto result = verify(plan);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("val: ok: 6 images in 2 shards, "));
}

TEST_F(VerifyCounts, an_image_that_is_missing_or_there_twice_is_told) {
  for (const int ranks : {1, 2}) {
    auto changed = plan;
    changed.images.erase(changed.images.begin() + 4);
    expect_complaint(verify(changed, json::array(), ranks), 4, 0, 1);
    changed = plan;
    changed.images.push_back(1);  // in the first shard and in the second
    expect_complaint(verify(changed, json::array(), ranks), 1, 2, 1);
  }
}

TEST_F(VerifyCounts, an_image_that_should_not_be_there_is_told) {
  auto changed = plan;
  changed.images.push_back(6);  // beyond the limit
  expect_complaint(verify(changed), 6, 1, 0);
  expect_complaint(verify(plan, {{{"image_id", source.set.images[2].id.value()}}}), 2, 1, 0);
}

TEST_F(Verify, images_that_were_left_out_as_bad_are_known) {
  const auto images = temporary.path() / "images";
  fs::copy(kBccd / "JPEGImages", images);
  const auto source = json::parse(text_of(kBccd / "coco/instances_train.json"));
  fs::resize_file(images / source["images"][7]["file_name"].get<std::string>(), 5000);
  const auto arguments = bccd("train", out, images);
  ASSERT_EQ(preprocess(arguments + std::vector<std::string>{"--skip-bad", "--limit", "100"}).exit_code, 0);
  const auto result = verify(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("train: ok: 99 images in 1 shard, "));
}

TEST_F(Verify, info_says_what_is_there) {
  const auto result = preprocess({"--info", out.string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::StartsWith(fmt::format(
                              "val: 87 images, 1137 boxes in '{}'\n  set identity ", out.string())));
  EXPECT_THAT(
      result.out,
      HasSubstr("\n  options {\"keep_original_jpeg\":false,\"shard_bytes\":500000,\"skip_bad\":false}\n"
                "  4 shards of "));
  EXPECT_THAT(result.out, HasSubstr("         87 images encoded anew without loss: "));
  EXPECT_THAT(result.out,
              HasSubstr(" RBC        (label 1, category id 1) ########################################\n"));
}

TEST_F(Verify, wrong_commands_end_with_one_line) {
  const auto error = [&](const std::vector<std::string>& arguments, int exit_code) {
    const auto result = preprocess(arguments);
    EXPECT_EQ(result.exit_code, exit_code);
    return result.err;
  };
  EXPECT_EQ(error({"--verify", "--info", out.string()}, 2),
            "error: --verify and --info exclude each other\n");
  EXPECT_EQ(error({"--verify", "--limit", "3", out.string()}, 2),
            "error: --limit is for packing, not for --verify\n");
  EXPECT_EQ(error({"--info", "coco", out.string()}, 2),
            "error: --info takes OUT alone; see ssd_preprocess --help\n");
  EXPECT_EQ(error({"--info"}, 2), "error: 0 paths given; expected COCO and OUT; see ssd_preprocess --help\n");
  EXPECT_EQ(error({"--limit", "0", "a", "b"}, 2), "error: --limit '0': a number from 1 to 4294967295\n");
  EXPECT_EQ(error({"--verify", temporary.path().string()}, 1),
            fmt::format("error: '{}': no set of shards (no 'train.manifest.json', no 'val.manifest.json')\n",
                        temporary.path().string()));
}

std::string python() {
  const char* name = std::getenv("SSD_TEST_PYTHON");
  return name != nullptr ? name : "/usr/bin/python3";
}

// The first block of Python in FORMAT.md, as it stands there.
TEST_F(Verify, FORMAT_md_shows_in_python_an_image_with_its_boxes) {
  if (run_program({python(), "-c", "import h5py, PIL"}).exit_code != 0)
    GTEST_SKIP() << python() << " has no h5py or no Pillow";
  const auto text = text_of(fs::path(SSD_SOURCE_DIR) / "src/record/FORMAT.md");
  const std::string opening = "```python\n";
  const auto start = text.find(opening) + opening.size();
  write_text(temporary.path() / "show.py", text.substr(start, text.find("```", start) - start));
  const auto picture = temporary.path() / "shown.jpg";
  const auto run = run_program(
      {python(), (temporary.path() / "show.py").string(), shard(0).string(), "3", picture.string()});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  RgbImage shown;
  JpegDecoder().decode(bytes_of(picture), shown);
  const auto set = ShardSet::open(out, Split::val);
  ASSERT_EQ(shown.width, set.records()[3].width);
  ASSERT_EQ(shown.height, set.records()[3].height);
  const auto boxes = set.annotations_of(set.records()[3]);
  ASSERT_FALSE(boxes.empty());
  for (const auto& annotation : boxes) {
    const auto [x, y, width, height] = annotation.bbox_xywh;
    // Left edge, middle. A line of pure red, two pixels wide, compressed: no photo of blood has its like.
    const auto pixel = (static_cast<std::size_t>(y + height / 2) * static_cast<std::size_t>(shown.width) +
                        static_cast<std::size_t>(x)) *
                       3;
    EXPECT_GT(shown.pixels[pixel] - shown.pixels[pixel + 1], 90) << annotation.id;
  }
}

}  // namespace
}  // namespace ssd
