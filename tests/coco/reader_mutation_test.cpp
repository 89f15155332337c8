// The readers of results and annotations on files that are nearly right: pieces deleted, repeated, exchanged,
// bytes changed. With SSD_TEST_LONG=1 for ten minutes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "reader_checks.hpp"

namespace ssd {
namespace {

const std::vector<std::string> kResults{
    "[]",
    R"([{"image_id": 42, "category_id": 18, "bbox": [258.15, 41.29, 348.26, 243.78], "score": 0.236}, {"image_id": 73, "category_id": 11, "bbox": [61.0, 22.75, 504.0, 609.67], "score": 0.318}])",
    R"([{"image_id":1,"category_id":2,"bbox":[1e2,-0.5,3E-1,12345678.12345678],"score":0.1234567890123456789012345},
{"score":1,"area":7.5,"segmentation":{"size":[4,5],"counts":"a},{\"x[b"},"bbox":[0,0,1,1],"category_id":3.0,"image_id":9007199254740993}
 , {"image_id":2,"id":3,"bbox":[272.67864990234375,0.000001,5e-324,1e308],"score":-0.0,"category_id":1,"name":"\u00e4\\"}])",
    R"([{"parts":[{"a":1}, {"b":[{},{}]}],"image_id":5,"category_id":0,"score":0.5,"bbox":[1,2,3,4]},{"image_id":5,"category_id":0,"score":true,"bbox":[1,2,3,4]}])"};

const std::vector<std::string> kAnnotations{
    R"({"info": {"x": [1, {"y": "}"}]}, "images": [{"id": 1, "width": 60, "height": 40, "file_name": "a\u0041.jpg"}, {"id": 0}],
"categories": [{"id": 1, "name": "cat", "supercategory": "animal"}],
"annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 1.5, 2, 3e0], "area": 6, "iscrowd": 0, "segmentation": [[1, 2, 3]]},
{"id": 2, "image_id": 0, "category_id": 1, "bbox": [5, 6, 7, 8], "iscrowd": 1, "segmentation": {"counts": [1, 2], "size": [3, 4]}}]})"};

constexpr std::uint32_t kShortRun = 10000;
constexpr std::string_view kBytes = "{}[]\",:0123456789-+.eE \n\\truefalsn\x80\x01";

class Mutator {
 public:
  explicit Mutator(std::uint32_t number) : random_(7, RandomPurpose::test, number, 0) {}

  std::string mutated(const std::vector<std::string>& seeds) {
    auto text = seeds[random_.below(static_cast<std::uint32_t>(seeds.size()))];
    for (auto steps = random_.below(4); steps > 0 && !text.empty(); --steps) {
      const auto begin = place_in(text);
      const auto count = 1 + random_.below(random_.below(4) == 0 ? 40 : 3);
      const auto piece = text.substr(begin, count);
      switch (random_.below(6)) {
        case 0:
          text.erase(begin, count);
          break;
        case 1:
          text.insert(begin, piece);
          break;
        case 2:
          text.insert(place_in(text), piece);
          break;
        case 3:
          text.insert(begin, 1, kBytes[random_.below(static_cast<std::uint32_t>(kBytes.size()))]);
          break;
        case 4:
          text.resize(begin);
          break;
        default:
          text[begin] = kBytes[random_.below(static_cast<std::uint32_t>(kBytes.size()))];
      }
    }
    return text;
  }

 private:
  std::size_t place_in(const std::string& text) {
    return random_.below(static_cast<std::uint32_t>(text.size()));
  }

  RandomStream random_;
};

template <class Check>
void run(const std::vector<std::string>& seeds, Check check) {
  using Clock = std::chrono::steady_clock;
  const bool is_long = std::getenv("SSD_TEST_LONG") != nullptr;
  const auto end = Clock::now() + std::chrono::minutes(5);  // of each of the two readers
  for (std::uint32_t number = 0; is_long ? Clock::now() < end : number < kShortRun; ++number) {
    const auto text = number < seeds.size() ? seeds[number] : Mutator(number).mutated(seeds);
    try {
      check(text);
    } catch (const std::exception& error) {
      FAIL() << "number " << number << ": " << error.what() << "\n" << text;
    }
  }
}

TEST(ReaderMutation, of_results_gives_the_detections_of_another_library_or_an_error) {
  run(kResults, test::check_results_text);
}

TEST(ReaderMutation, of_annotations_gives_a_set_that_is_whole_or_an_error) {
  run(kAnnotations, test::check_annotations_text);
}

}  // namespace
}  // namespace ssd
