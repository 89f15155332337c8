// The packer's parts: options, raster decision, findings, ordered work in threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "core/error.hpp"
#include "preprocess/check_image.hpp"
#include "preprocess/findings.hpp"
#include "preprocess/options.hpp"
#include "preprocess/ordered_parallel.hpp"
#include "preprocess/sources.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

PreprocessOptions parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ssd_preprocess");
  return parse_options(static_cast<int>(arguments.size()), arguments.data()).options.value();
}

TEST(Options, have_the_defaults_that_help_promises) {
  const auto options = parse({"coco", "out"});
  EXPECT_EQ(options.coco, "coco");
  EXPECT_EQ(options.output, "out");
  EXPECT_EQ(options.split, std::nullopt);
  EXPECT_EQ(options.pack.shard_bytes, std::uint64_t{256} << 20);
  EXPECT_GE(options.threads, 1U);
  EXPECT_FALSE(options.force);
  EXPECT_FALSE(options.pack.skip_bad);
}

TEST(Options, are_read_before_and_after_the_paths) {
  const auto options = parse({"--split", "val", "--annotations=a.json", "out", "--images", "pictures",
                              "--shard-size", "64K", "--threads", "3", "--force", "--skip-bad"});
  EXPECT_TRUE(options.coco.empty());
  EXPECT_EQ(options.output, "out");
  EXPECT_EQ(options.split, Split::val);
  EXPECT_EQ(options.annotations, "a.json");
  EXPECT_EQ(options.images, "pictures");
  EXPECT_EQ(options.pack.shard_bytes, 65536U);
  EXPECT_EQ(options.threads, 3U);
  EXPECT_TRUE(options.force);
  EXPECT_TRUE(options.pack.skip_bad);
}

TEST(Options, byte_counts_take_the_usual_units_and_nothing_else) {
  EXPECT_EQ(parse_byte_count("--x", "0"), 0U);
  EXPECT_EQ(parse_byte_count("--x", "123B"), 123U);
  EXPECT_EQ(parse_byte_count("--x", "4K"), 4096U);
  EXPECT_EQ(parse_byte_count("--x", "4KiB"), 4096U);
  EXPECT_EQ(parse_byte_count("--x", "4kB"), 4000U);
  EXPECT_EQ(parse_byte_count("--x", "2M"), 2U << 20);
  EXPECT_EQ(parse_byte_count("--x", "2MB"), 2'000'000U);
  EXPECT_EQ(parse_byte_count("--x", "3GiB"), std::uint64_t{3} << 30);
  EXPECT_EQ(parse_byte_count("--x", "3GB"), 3'000'000'000U);
  for (const auto* text : {"", "M", "-1", "+1", " 1", "1 M", "1.5G", "1T", "1mb", "99999999999999999999",
                           "18446744073709551615K"})
    EXPECT_EQ(message_of<UsageError>([&] { parse_byte_count("--x", text); }),
              fmt::format("--x '{}': a number of bytes such as 256MiB", text));
}

TEST(DecideRaster, T2_07_T2_08_follows_the_size_in_the_json) {
  const auto decide = [](int width, int height, int orientation) {
    Raster raster;
    const bool fits = decide_raster({ImageId(1), "a.jpg", width, height}, {60, 40, 3, orientation}, raster);
    return fits ? fmt::format("{}x{} orientation {}", raster.width, raster.height, raster.orientation)
                : "neither";
  };
  EXPECT_EQ(decide(60, 40, 1), "60x40 orientation 1");
  EXPECT_EQ(decide(60, 40, 6), "60x40 orientation 1");  // drawn on the stored raster, whatever EXIF says
  EXPECT_EQ(decide(40, 60, 6), "40x60 orientation 6");
  EXPECT_EQ(decide(40, 60, 8), "40x60 orientation 8");
  EXPECT_EQ(decide(40, 60, 1), "neither");  // swapped by mistake: nothing says how to turn it
  EXPECT_EQ(decide(40, 60, 3), "neither");
  EXPECT_EQ(decide(61, 40, 1), "neither");
  EXPECT_EQ(decide(0, 0, 6), "60x40 orientation 1");
}

TEST(DecideRaster, takes_a_square_as_it_is_stored) {
  Raster raster;
  EXPECT_TRUE(decide_raster({ImageId(1), "a.jpg", 50, 50}, {50, 50, 3, 6}, raster));
  EXPECT_EQ(raster.orientation, 1);
}

TEST(Findings, count_all_and_list_the_first_ten_of_each_kind) {
  Findings findings;
  for (int i = 0; i < 12; ++i) findings.add("many", fmt::format("m{}", i));
  findings.add("few", "f");
  EXPECT_EQ(findings.count(), 13U);
  EXPECT_THAT(findings.lines("val"),
              testing::ElementsAre("val: 12 many:", "  m0", "  m1", "  m2", "  m3", "  m4", "  m5", "  m6",
                                   "  m7", "  m8", "  m9", "  ... and 2 more", "val: 1 few:", "  f"));
}

struct NoWorker {};

TEST(OrderedParallel, gives_results_in_order_and_keeps_the_window) {
  for (const unsigned threads : {1U, 4U}) {
    std::atomic<std::size_t> taken = 0;
    std::atomic<bool> is_within = true;
    std::vector<std::size_t> results;
    ordered_parallel<NoWorker, std::size_t>(
        2000, {threads, 8},
        [&](NoWorker&, std::size_t i) {
          if (i >= taken + 9) is_within = false;  // 8 that wait, and the one in hand
          return i * i;
        },
        [&](std::size_t i, std::size_t&& result) {
          EXPECT_EQ(i, results.size());
          results.push_back(result);
          ++taken;
        });
    ASSERT_EQ(results.size(), 2000U);
    for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], i * i);
    EXPECT_TRUE(is_within);
  }
}

TEST(OrderedParallel, an_exception_of_either_side_ends_the_work_and_leaves) {
  const auto run = [](std::size_t bad_make, std::size_t bad_take) {
    ordered_parallel<NoWorker, int>(
        100, {3, 4},
        [&](NoWorker&, std::size_t i) {
          if (i == bad_make) throw Error("make");
          return 0;
        },
        [&](std::size_t i, int&&) {
          if (i == bad_take) throw Error("take");
        });
  };
  EXPECT_EQ(message_of<Error>([&] { run(50, 1000); }), "make");
  EXPECT_EQ(message_of<Error>([&] { run(1000, 50); }), "take");
  EXPECT_EQ(message_of<Error>([&] { run(60, 50); }), "take");
  EXPECT_NO_THROW(run(1000, 1000));
}

TEST(OrderedParallel, does_nothing_for_no_items) {
  ordered_parallel<NoWorker, int>(
      0, {2, 4}, [](NoWorker&, std::size_t) { return 0; }, [](std::size_t, int&&) { FAIL(); });
}

TEST(FindImagesNearby, looks_one_level_up_and_down) {
  const TemporaryFolder folder;
  write_text(folder.path() / "coco/train2017/a.jpg", "x");
  std::filesystem::create_directories(folder.path() / "coco/val2017");
  EXPECT_EQ(find_images_nearby(folder.path() / "coco", "a.jpg"), folder.path() / "coco/train2017");
  EXPECT_EQ(find_images_nearby(folder.path() / "coco/val2017/", "a.jpg"), folder.path() / "coco/train2017");
  EXPECT_EQ(find_images_nearby(folder.path() / "coco/train2017/deeper", "a.jpg"),
            folder.path() / "coco/train2017");
  EXPECT_EQ(find_images_nearby(folder.path() / "coco", "b.jpg"), "");
}

}  // namespace
}  // namespace ssd
