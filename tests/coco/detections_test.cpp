#include "coco/detections.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>

#include "core/error.hpp"
#include "core/random.hpp"

namespace ssd {
namespace {

using testing::ElementsAre;

class DetectionsTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  std::vector<Detection> read(std::string_view text) {
    std::ofstream(path_, std::ios::binary) << text;
    return read_detections(path_);
  }

  std::string error_of(std::string_view text) {
    try {
      read(text);
    } catch (const Error& error) {
      std::string line = error.what();
      const auto name = fmt::format("'{}'", path_.string());
      if (const auto at = line.find(name); at != std::string::npos) line.replace(at, name.size(), "FILE");
      return line;
    }
    return "no error";
  }

  std::string written(std::span<const Detection> detections) {
    write_detections(path_, detections);
    std::ifstream file(path_);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  std::filesystem::path path_ = testing::TempDir() + "detections_" +
                                testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
};

TEST_F(DetectionsTest, are_read_in_the_order_of_the_file) {
  const auto detections = read(R"([
      {"image_id": 42, "category_id": 18, "bbox": [258.15, 41.29, 348.26, 243.78], "score": 0.236},
      {"score": 1, "area": 5, "segmentation": {"counts": "x"}, "bbox": [-1, 0, 2, 3e-1], "category_id": 1.0,
       "image_id": 9007199254740993, "id": "x"}])");
  ASSERT_EQ(detections.size(), 2U);
  EXPECT_EQ(detections[0].image_id, ImageId(42));
  EXPECT_EQ(detections[0].category_id, CategoryId(18));
  EXPECT_THAT(detections[0].bbox_xywh, ElementsAre(258.15, 41.29, 348.26, 243.78));
  EXPECT_EQ(detections[0].score, 0.236);
  EXPECT_EQ(detections[1].image_id, ImageId(9007199254740993));
  EXPECT_EQ(detections[1].category_id, CategoryId(1));
  EXPECT_EQ(detections[1].score, 1);
}

TEST_F(DetectionsTest, may_be_none) {
  EXPECT_TRUE(read("[]").empty());
  EXPECT_TRUE(read(" [ ] \n").empty());
}

TEST_F(DetectionsTest, that_are_not_right_are_named) {
  EXPECT_EQ(error_of(R"([{"image_id": "1", "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}])"),
            "FILE: detection [0]: image_id is \"1\", but must be a whole number");
  EXPECT_EQ(error_of(R"([{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1},
                         {"image_id": 1, "category_id": 1, "bbox": [0, 0, 1], "score": 1}])"),
            "FILE: detection [1]: bbox has 3 numbers, but must have 4: left, top, width, height");
  EXPECT_EQ(error_of(R"([{"image_id": 1, "category_id": 1, "bbox": [0, NaN, 1, 1], "score": 1}])"),
            "FILE: detection [0]: bbox[1] is NaN, but must be a finite number");
  EXPECT_EQ(error_of(R"([{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": NaN}])"),
            "FILE: detection [0]: score is NaN, but must be a finite number");
  EXPECT_EQ(error_of(R"([{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": null}])"),
            "FILE: detection [0]: score is null, but must be a finite number");
  EXPECT_EQ(error_of(R"([{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}])"),
            "FILE: detection [0] has no score");
  EXPECT_EQ(error_of(R"([{"image_id": 1, "category_id": 1, "segmentation": [], "score": 1}])"),
            "FILE: detection [0] has no bbox");
  EXPECT_EQ(error_of(R"([{"category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}])"),
            "FILE: detection [0] has no image_id");
  EXPECT_EQ(error_of(R"([{"image_id": 1, "bbox": [0, 0, 1, 1], "score": 1}])"),
            "FILE: detection [0] has no category_id");
  // More digits than simdjson reads right where it takes any kind of number.
  EXPECT_EQ(
      error_of(
          R"([{"image_id": 90.1234567890123456789012, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}])"),
      "FILE: detection [0]: image_id is 90.12345678901235, but must be a whole number of 64 bits "
      "(decimals: up to 2^53)");
  EXPECT_EQ(error_of("[7]"), "FILE: detection [0] is not an object");
  EXPECT_EQ(
      error_of(R"({"images": []})"),
      "FILE is not a COCO results file: its top is not an array of detections, but an object; an annotation "
      "file, perhaps?");
  EXPECT_EQ(error_of("5"), "FILE is not a COCO results file: its top is not an array of detections");
}

TEST_F(DetectionsTest, cut_off_anywhere_are_refused) {
  const std::string text = R"([{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1},
                               {"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}])";
  ASSERT_EQ(error_of(text), "no error");
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_THAT(error_of(text.substr(0, length)), testing::StartsWith("FILE is not valid JSON")) << length;
  }
  EXPECT_THAT(error_of(text + "]"), testing::StartsWith("FILE is not valid JSON"));
  EXPECT_THAT(error_of(text + std::string("\0 5,", 4)), testing::StartsWith("FILE is not valid JSON"));
  EXPECT_EQ(error_of(std::string("[\0]", 3)), "FILE: detection [0] is not an object");
}

TEST_F(DetectionsTest, are_written_as_coco_results) {
  const std::vector<Detection> detections{{ImageId(42), CategoryId(18), {258.15, 0, 0.1, 1e-7}, 0.236},
                                          {ImageId(-1), CategoryId(0), {1, 2, 3, 1e300}, 1}};
  EXPECT_EQ(written(detections),
            "[\n{\"image_id\":42,\"category_id\":18,\"bbox\":[258.15,0,0.1,1e-07],\"score\":0.236},\n"
            "{\"image_id\":-1,\"category_id\":0,\"bbox\":[1,2,3,1e+300],\"score\":1}\n]\n");
  EXPECT_EQ(written({}), "[]\n");
}

TEST_F(DetectionsTest, T3_14_come_back_as_the_same_doubles) {
  RandomStream random(5, RandomPurpose::test, 0, 0);
  std::vector<Detection> detections;
  for (int i = 0; i < 5000; ++i) {
    Detection detection{
        ImageId(std::numeric_limits<std::int64_t>::max() - i), CategoryId(i), {}, random.uniform()};
    for (auto& value : detection.bbox_xywh) {
      // Any finite bits: every exponent, denormals and negative numbers among them.
      do {
        const std::uint64_t bits = (std::uint64_t{random.next_u32()} << 32) | random.next_u32();
        value = std::bit_cast<double>(bits);
      } while (!std::isfinite(value));
    }
    detections.push_back(detection);
  }
  write_detections(path_, detections);
  const auto read_back = read_detections(path_);
  ASSERT_EQ(read_back.size(), detections.size());
  for (std::size_t i = 0; i < detections.size(); ++i) {
    ASSERT_EQ(read_back[i].image_id, detections[i].image_id);
    ASSERT_EQ(read_back[i].bbox_xywh, detections[i].bbox_xywh) << i;
    ASSERT_EQ(read_back[i].score, detections[i].score);
  }
}

// Numbers of all lengths and forms, in records that are read in one pass and in ones that are not (an id with
// a point): as strtod reads them.
TEST_F(DetectionsTest, numbers_are_correctly_rounded_whatever_their_form) {
  RandomStream random(6, RandomPurpose::test, 0, 0);
  std::vector<std::string> numbers{"0.12345678901234567890125",
                                   "0.00000000000000000000012345678901234567890125",
                                   "1e-400",
                                   "9007199254740993",
                                   "9007199254740992.999999999999999999999",
                                   "-0",
                                   "179769313486231570000000000000000000000e270",
                                   "2.2250738585072011e-308",
                                   "1E+2"};
  for (int i = 0; i < 3000; ++i) {
    const double size = std::ldexp(random.uniform(), static_cast<int>(random.below(60)) - 40);
    const auto digits = 1 + random.below(30);
    numbers.push_back(i % 3 == 0   ? fmt::format("{:.{}f}", size, digits)
                      : i % 3 == 1 ? fmt::format("{:.{}e}", size, digits)
                                   : fmt::format("{}", static_cast<float>(size)));
  }
  for (const std::string id : {"7", "7.0"}) {
    std::string text = "[";
    for (const auto& number : numbers) {
      text += fmt::format(R"({}{{"image_id":{},"category_id":1,"bbox":[0,{},1,1],"score":{}}})",
                          text.size() == 1 ? "" : ",", id, number, number);
    }
    const auto detections = read(text + "]");
    ASSERT_EQ(detections.size(), numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double expected = std::strtod(numbers[i].c_str(), nullptr);
      EXPECT_EQ(std::bit_cast<std::uint64_t>(detections[i].score), std::bit_cast<std::uint64_t>(expected))
          << numbers[i];
      EXPECT_EQ(detections[i].bbox_xywh[1], expected) << numbers[i];
    }
  }
}

// Blocks that end anywhere, white space everywhere, and text that looks like the beginning of a record.
TEST_F(DetectionsTest, are_the_same_for_any_blocks_and_threads) {
  std::string text = " [\n";
  constexpr int kCount = 200;
  for (int i = 0; i < kCount; ++i) {
    const char* misleading = i % 5 == 0   ? R"("parts": [{"a": 1}, {"image_id": 7}],)"
                             : i % 7 == 0 ? R"("note": "}, {\"image_id\": 8",)"
                                          : "";
    text += fmt::format(
        "{}{{{} \"score\" : 0.{},\n\"image_id\":{}, \"bbox\" : [ 1, 2 ,3,{}], \"category_id\": 1 {}}}",
        i == 0       ? ""
        : i % 3 == 0 ? " ,\n\n "
                     : ", ",
        misleading, i, i, i, i % 11 == 0 ? "\t\t" : "");
  }
  text += " ]\n ";
  const auto whole = read(text);
  ASSERT_EQ(whole.size(), static_cast<std::size_t>(kCount));
  for (std::size_t block = 1; block < 3 * text.size(); block = block < 300 ? block + 7 : block * 2) {
    for (const int threads : {1, 2, 4}) {
      std::size_t told = 0;
      const auto again = read_detections(path_, {.threads = threads,
                                                 .block_bytes = block,
                                                 .on_progress = [&](std::size_t count) { told += count; }});
      EXPECT_EQ(told, whole.size());
      ASSERT_EQ(again.size(), whole.size()) << block;
      for (std::size_t i = 0; i < whole.size(); ++i) {
        ASSERT_EQ(again[i].image_id, ImageId(static_cast<std::int64_t>(i)));
        ASSERT_EQ(again[i].bbox_xywh, whole[i].bbox_xywh);
        ASSERT_EQ(again[i].score, whole[i].score);
      }
    }
  }
}

TEST_F(DetectionsTest, an_error_names_the_same_record_for_any_blocks_and_threads) {
  std::string text = "[";
  for (int i = 0; i < 100; ++i) {
    text += fmt::format(R"({}{{"image_id":{},"category_id":1,"bbox":[0,0,1,1],"score":{}}})",
                        i == 0 ? "" : ",", i, i == 57 || i == 80 ? "\"high\"" : "0.5");
  }
  text += "]";
  std::ofstream(path_, std::ios::binary) << text;
  for (const std::size_t block : {1, 60, 200, 1000, 100000}) {
    for (const int threads : {1, 2, 4}) {
      try {
        read_detections(path_, {.threads = threads, .block_bytes = block, .on_progress = {}});
        FAIL() << "read";
      } catch (const Error& error) {
        EXPECT_EQ(error.what(),
                  fmt::format("'{}': detection [57]: score is \"high\", but must be a finite number",
                              path_.string()));
      }
    }
  }
}

TEST_F(DetectionsTest, that_are_not_finite_are_not_written) {
  const std::vector<Detection> detections{{ImageId(1), CategoryId(1), {0, 0, 1, 1}, 0.5},
                                          {ImageId(7), CategoryId(1), {0, 0, 1, 1}, std::nan("")}};
  try {
    write_detections(path_, detections);
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(),
              fmt::format("cannot write '{}': detection [1] of image 7 has a score or box that is not finite",
                          path_.string()));
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace ssd
