#include "coco/detections.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
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
  EXPECT_EQ(error_of("[7]"), "FILE: detection [0] is not an object");
  EXPECT_EQ(error_of(R"({"images": []})"),
            "FILE is not a COCO results file: its top is not an array of detections");
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
