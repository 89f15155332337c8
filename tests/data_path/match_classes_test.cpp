#include "data/match_classes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Category> categories(const std::vector<std::pair<std::int64_t, std::string>>& pairs) {
  std::vector<Category> result;
  for (const auto& [id, name] : pairs) result.push_back({CategoryId(id), name});
  return result;
}

std::vector<std::int64_t> numbers(const std::vector<CategoryId>& ids) {
  std::vector<std::int64_t> result;
  for (const auto id : ids) result.push_back(id.value());
  return result;
}

NetworkClasses trained(const std::vector<std::pair<std::int64_t, std::string>>& pairs) {
  return network_classes("train", categories(pairs));
}

// Ids of the labels where val is evaluated with what train trained, or the error.
std::vector<std::int64_t> ids_in(const NetworkClasses& train, const std::vector<Category>& val) {
  return numbers(expect_known_classes(train, "val", val, "pack again"));
}
std::string error_in(const NetworkClasses& train, const std::vector<Category>& val) {
  return message_of<Error>([&] { expect_known_classes(train, "val", val, "pack again"); });
}

TEST(NetworkClasses, U1_a_name_that_is_not_utf8_is_refused) {
  EXPECT_EQ(
      message_of<Error>([] {
        network_classes("the train shards", {{CategoryId(7), "caf\xe9"}});
      }),
      "the train shards: the name of category 7, 'caf\\xe9', is not UTF-8, so that no checkpoint could be "
      "written; correct it and run ssd_preprocess again");
  EXPECT_EQ(network_classes("the train shards", {{CategoryId(7), "caf\xc3\xa9"}}).names.size(), 1U);
}

TEST(MatchClasses, U2_goes_by_name_in_whatever_order_and_under_whatever_ids) {
  const auto train = trained({{1, "cat"}, {2, "dog"}, {3, "cow"}});
  EXPECT_THAT(ids_in(train, categories({{1, "cat"}, {2, "dog"}, {3, "cow"}})), ElementsAre(1, 2, 3));
  EXPECT_THAT(ids_in(train, categories({{3, "cow"}, {1, "cat"}, {2, "dog"}})), ElementsAre(1, 2, 3));
  EXPECT_THAT(ids_in(train, categories({{30, "cow"}, {10, "cat"}, {20, "dog"}})), ElementsAre(10, 20, 30));
}

TEST(MatchClasses, U2_a_set_may_lack_classes_whose_ids_then_are_no_others) {
  const auto train = trained({{1, "cat"}, {2, "dog"}, {3, "cow"}});
  EXPECT_THAT(ids_in(train, categories({{3, "cow"}, {2, "dog"}})), ElementsAre(1, 2, 3));
  EXPECT_THAT(ids_in(train, categories({{7, "dog"}})), ElementsAre(1, 7, 3));
  EXPECT_THAT(ids_in({"file", {"cat", "dog", "cow"}, {}}, categories({{1, "dog"}, {2, "cow"}})),
              ElementsAre(3, 1, 2));
  const auto match = match_classes({"file", {"cat", "dog"}, {}}, categories({{1, "dog"}, {5, "bird"}}));
  EXPECT_THAT(numbers(match.category_ids), ElementsAre(2, 1));
  EXPECT_THAT(match.lacking, ElementsAre(0U));
  ASSERT_EQ(match.unknown.size(), 1U);
  EXPECT_EQ(match.unknown[0].name, "bird");
}

TEST(MatchClasses, U2_ids_that_mean_other_names_and_classes_that_train_lacks_are_refused_by_the_first) {
  const auto train = trained({{1, "cat"}, {2, "dog"}});
  const auto swapped = "val: category 1 is 'dog', but in train it is 'cat'; pack again";
  EXPECT_EQ(error_in(train, categories({{1, "dog"}, {2, "cat"}})), swapped);
  EXPECT_EQ(error_in(train, categories({{1, "dog"}})), swapped);
  EXPECT_EQ(error_in(train, categories({{1, "cat"}, {2, "Dog"}})),
            "val: category 2 is 'Dog', but in train it is 'dog'; pack again");
  EXPECT_EQ(error_in(train, categories({{1, "cat"}, {9, "cow"}, {2, "dog"}})),
            "val: category 9 'cow' is no class of train, whose 2 classes are cat, dog; pack again");
  const NetworkClasses many{"file", {"a", "b", "c", "d", "e", "f", "g", "h", "i"}, {}};
  EXPECT_EQ(
      error_in(many, categories({{1, "z"}})),
      "val: category 1 'z' is no class of file, whose 9 classes are a, b, c, d, e, f, g, h, ...; pack again");
}

TEST(MatchClasses, U2_two_classes_of_one_name_belong_together_by_id_and_else_by_order) {
  const auto train = trained({{1, "cat"}, {2, "cat"}, {3, "dog"}});
  EXPECT_THAT(ids_in(train, categories({{2, "cat"}, {3, "dog"}})), ElementsAre(1, 2, 3));
  const auto match = match_classes({"file", {"cat", "cat"}, {}}, categories({{5, "cat"}, {6, "cat"}}));
  EXPECT_THAT(numbers(match.category_ids), ElementsAre(5, 6));
  EXPECT_THAT(match.unknown, IsEmpty());
}

}  // namespace
}  // namespace ssd
