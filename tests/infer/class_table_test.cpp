#include "infer/class_table.hpp"

#include <gtest/gtest.h>

#include "checkpoint/class_count.hpp"
#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

// A checkpoint of this many classes (with the background) with names from label 1 on; none: without a
// label_map.
CheckpointItem checkpoint(std::int64_t classes, const std::vector<std::string>& names) {
  TensorValue bias;
  bias.shape = {4 * classes};
  Dict model(Dict::Kind::ordered);
  model.set("conf.0.bias", bias);
  Dict root;
  root.set("model", std::move(model));
  if (!names.empty()) {
    Dict labels;
    labels.set(std::int64_t{0}, "background");
    for (std::size_t i = 0; i < names.size(); ++i) labels.set(static_cast<std::int64_t>(i + 1), names[i]);
    root.set("label_map", std::move(labels));
  }
  return {"x.pt", std::move(root)};
}

AnnotationSet truth_of(std::vector<Category> categories) {
  AnnotationSet truth;
  truth.categories = std::move(categories);
  return truth;
}

void expect_table(const std::vector<Category>& table,
                  const std::vector<std::pair<std::int64_t, std::string>>& expected) {
  ASSERT_EQ(table.size(), expected.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(table[i].id.value(), expected[i].first);
    EXPECT_EQ(table[i].name, expected[i].second);
  }
}

TEST(ClassTable, without_a_truth_the_ids_are_the_labels) {
  expect_table(class_table(checkpoint(3, {"cat", "dog"}), nullptr), {{1, "cat"}, {2, "dog"}});
  expect_table(class_table(checkpoint(3, {}), nullptr), {{1, "class 1"}, {2, "class 2"}});
}

TEST(ClassTable, the_truth_gives_ids_by_name_in_whatever_order) {
  const auto truth = truth_of({{CategoryId(90), "dog"}, {CategoryId(5), "cow"}, {CategoryId(0), "cat"}});
  expect_table(class_table(checkpoint(3, {"cat", "dog"}), &truth), {{0, "cat"}, {90, "dog"}});
}

TEST(ClassTable, a_file_without_names_takes_the_truths_in_order) {
  const auto truth = truth_of({{CategoryId(90), "dog"}, {CategoryId(5), "cow"}});
  expect_table(class_table(checkpoint(3, {}), &truth), {{90, "dog"}, {5, "cow"}});
  EXPECT_EQ(message_of<Error>([&] { class_table(checkpoint(4, {}), &truth); }),
            "checkpoint 'x.pt': it has no names for its 3 classes, and the truth has 2 categories");
}

TEST(ClassTable, U2_classes_that_the_truth_lacks_get_ids_that_it_does_not_use) {
  const auto truth = truth_of({{CategoryId(1), "dog"}});
  expect_table(class_table(checkpoint(4, {"cat", "dog", "cow"}), &truth),
               {{2, "cat"}, {1, "dog"}, {3, "cow"}});
}

TEST(ClassTable, U2_a_truth_of_other_classes_is_refused_by_the_first_of_them) {
  const auto truth = truth_of({{CategoryId(1), "dog"}, {CategoryId(5), "cow"}});
  EXPECT_EQ(
      message_of<Error>([&] {
        class_table(checkpoint(3, {"dog", "cat"}), &truth);
      }),
      "the truth: category 5 'cow' is no class of checkpoint 'x.pt', whose 2 classes are dog, cat; give the "
      "truth of the classes that it was trained on");
}

TEST(ClassTable, a_file_of_another_network_is_named) {
  Dict root;
  TensorValue tensor;
  tensor.shape = {4};
  root.set("fc.weight", tensor);
  EXPECT_EQ(message_of<Error>([&] { count_classes(CheckpointItem("y.pt", root)); }),
            "checkpoint 'y.pt': no tensor 'conf.0.bias' in it; is it one of an SSD300?");
  EXPECT_EQ(count_classes(checkpoint(81, {})), 80);
}

}  // namespace
}  // namespace ssd
