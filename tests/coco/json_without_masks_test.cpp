// What is left of a JSON text without its masks.
#include "coco/json_without_masks.hpp"

#include <gtest/gtest.h>

#include "coco/annotations.hpp"
#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

std::string without_masks(const std::string& text) {
  const TemporaryFolder folder;
  write_text(folder.path() / "a.json", text);
  const auto json = read_json_without_masks(folder.path() / "a.json");
  EXPECT_EQ(json.file_bytes, text.size());
  return {json.buffer.data(), json.byte_count};
}

TEST(JsonWithoutMasks, polygons_and_run_lengths_become_0) {
  EXPECT_EQ(without_masks(R"({"segmentation":[[1.5,2],[3]],"id":7})"), R"({"segmentation":0,"id":7})");
  EXPECT_EQ(without_masks(R"({"id":7, "segmentation" : {"counts":"a]}\\\"[","size":[3,4]} })"),
            R"({"id":7, "segmentation" : 0 })");
  EXPECT_EQ(without_masks(R"([{"segmentation":[]},{"segmentation":{}}])"),
            R"([{"segmentation":0},{"segmentation":0}])");
}

TEST(JsonWithoutMasks, all_else_stays) {
  for (const auto* text :
       {"", "[]", R"({"name":"segmentation","list":[1]})", R"(["segmentation",[1,2]])",
        R"({"segmentation":"[1]"})", R"({"segmentation":1,"a":[2]})",
        R"({"a":"\\\"segmentation\\\":[1]","b":[2]})",
        R"({"my segmentation":[1],"segmentations":[2],"Segmentation":[3]})", R"({"a":"\"segmentation":[1]})"})
    EXPECT_EQ(without_masks(text), text);
}

// The file is read in pieces of 2^20 bytes: one ends everywhere between a name and what follows its mask.
TEST(JsonWithoutMasks, the_end_of_a_piece_changes_nothing) {
  const std::string name = R"("segmentation": [[1,2],["]"]], "id":1})";
  for (std::size_t shift = 0; shift <= name.size(); ++shift) {
    const auto head = "{\"a\":\"" + std::string((1U << 20) - 8 - shift, 'x') + "\",";
    EXPECT_EQ(without_masks(head + name), head + R"("segmentation": 0, "id":1})") << shift;
  }
}

TEST(JsonWithoutMasks, a_mask_that_does_not_end_is_a_file_cut_off) {
  const TemporaryFolder folder;
  const std::string text = R"({"images":[],"categories":[],"annotations":[{"segmentation":[[1,2)";
  write_text(folder.path() / "a.json", text);
  EXPECT_NE(message_of<Error>([&] {
              read_annotations(folder.path() / "a.json");
            }).find(fmt::format("is not valid JSON or is cut off ({} bytes: ", text.size())),
            std::string::npos);
}

TEST(JsonWithoutMasks, a_folder_is_an_error) {
  EXPECT_THROW(read_json_without_masks("/tmp"), Error);
}

}  // namespace
}  // namespace ssd
