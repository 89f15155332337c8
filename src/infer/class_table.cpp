#include "infer/class_table.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "checkpoint/class_count.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace ssd {
namespace {

// earlier: classes before this one that have its name; the truth's are taken in the same order.
CategoryId find_category(const AnnotationSet& truth, const std::string& name, std::ptrdiff_t earlier,
                         int label) {
  for (const auto& category : truth.categories) {
    if (category.name == name && earlier-- == 0) return category.id;
  }
  std::vector<std::string> names;
  for (const auto& known : truth.categories) names.push_back(known.name);
  throw Error(fmt::format("the truth has no category '{}' (class {} of the checkpoint); it has: {}", name,
                          label, fmt::join(names, ", ")));
}

}  // namespace

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
    const auto earlier = std::count_if(classes.begin(), classes.end(),
                                       [&](const Category& category) { return category.name == name; });
    const auto id =
        truth == nullptr ? CategoryId(label) : find_category(*truth, name, earlier, static_cast<int>(label));
    classes.push_back({id, std::move(name)});
  }
  return classes;
}

}  // namespace ssd
