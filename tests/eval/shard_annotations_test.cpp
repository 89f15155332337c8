#include "eval/shard_annotations.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "record/made_set.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

// As the JSON had them: made records lie in the shards in an order that is not the annotations' own, as in a
// set that was shuffled. Ids are repeated across images.
TEST(AnnotationSetOf, has_the_images_of_the_shards_and_the_annotations_in_the_order_of_the_json) {
  const TemporaryFolder folder;
  auto records = made_records(9);
  struct Expected {
    std::uint64_t json_order;
    Annotation annotation;
  };
  std::vector<Expected> expected;
  for (auto& made : records) {
    for (std::size_t k = 0; k < made.record.annotations.size(); ++k) {
      auto& [annotation, json_order, is_trainable] = made.record.annotations[k];
      annotation.id = static_cast<std::int64_t>(k);
      expected.push_back({json_order, annotation});
    }
  }
  ASSERT_EQ(expected.size(), 12U);
  std::sort(expected.begin(), expected.end(),
            [](const auto& a, const auto& b) { return a.json_order < b.json_order; });
  write_made_set(folder.path(), records, {.split = Split::val});
  const auto set = annotation_set_of(ShardSet::open(folder.path(), Split::val));

  ASSERT_EQ(set.categories.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(set.categories[i].id, made_categories()[i].id);
    EXPECT_EQ(set.categories[i].name, made_categories()[i].name);
  }
  ASSERT_EQ(set.images.size(), records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(set.images[i].id, records[i].record.image.id);
    EXPECT_EQ(set.images[i].file_name, records[i].record.image.file_name);
    EXPECT_EQ(set.images[i].width, records[i].record.image.width);
    EXPECT_EQ(set.images[i].height, records[i].record.image.height);
  }
  ASSERT_EQ(set.annotations.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& found = set.annotations[i];
    const auto& annotation = expected[i].annotation;
    EXPECT_EQ(found.id, annotation.id) << i;
    EXPECT_EQ(found.image_id, annotation.image_id) << i;
    EXPECT_EQ(found.category_id, annotation.category_id);
    EXPECT_EQ(found.bbox_xywh, annotation.bbox_xywh);
    EXPECT_EQ(found.area, annotation.area);
    EXPECT_EQ(found.is_crowd, annotation.is_crowd);
  }
}

}  // namespace
}  // namespace ssd
