#include "infer/class_table.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "boxes/constants.hpp"
#include "checkpoint/state_dict.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace ssd {
namespace {

CategoryId find_category(const AnnotationSet& truth, const std::string& name, int label) {
  const auto same = [&](const Category& category) { return category.name == name; };
  const auto category = std::find_if(truth.categories.begin(), truth.categories.end(), same);
  if (category != truth.categories.end()) return category->id;
  std::vector<std::string> names;
  for (const auto& known : truth.categories) names.push_back(known.name);
  throw Error(fmt::format("the truth has no category '{}' (class {} of the checkpoint); it has: {}", name,
                          label, fmt::join(names, ", ")));
}

}  // namespace

int count_classes(const CheckpointItem& root) {
  for (const auto& [name, tensor] : state_dict_of(root)) {
    if (name != "conf.0.bias" || tensor.shape.size() != 1) continue;
    const auto count = tensor.shape[0] / kBoxesPerCell[0] - 1;
    SSD_VALIDATE(tensor.shape[0] % kBoxesPerCell[0] == 0 && count >= 1 && count < 100000,
                 "checkpoint '{}': 'conf.0.bias' has {} elements, which is no number of classes",
                 root.source(), tensor.shape[0]);
    return static_cast<int>(count);
  }
  throw Error(
      fmt::format("checkpoint '{}': no tensor 'conf.0.bias' in it; is it one of an SSD300?", root.source()));
}

std::vector<Category> class_table(const CheckpointItem& root, const AnnotationSet* truth) {
  const int count = count_classes(root);
  const auto labels = root.find("label_map");
  if (!labels && truth != nullptr) {
    SSD_VALIDATE(truth->categories.size() == static_cast<std::size_t>(count),
                 "checkpoint '{}': it has no names for its {} classes, and the truth has {} categories",
                 root.source(), count, truth->categories.size());
    log_info("checkpoint '{}': it has no names for its classes; taken are the truth's, in their order",
             root.source());
    return truth->categories;
  }
  std::vector<Category> classes;
  for (std::int64_t label = 1; label <= count; ++label) {
    const auto item = labels ? labels->find(label) : std::nullopt;
    auto name = item ? item->text() : fmt::format("class {}", label);
    const auto id =
        truth == nullptr ? CategoryId(label) : find_category(*truth, name, static_cast<int>(label));
    classes.push_back({id, std::move(name)});
  }
  return classes;
}

}  // namespace ssd
