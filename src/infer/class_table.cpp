#include "infer/class_table.hpp"

#include "checkpoint/class_count.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "data/match_classes.hpp"

namespace ssd {
namespace {

// A truth that only shares some of the classes is more likely another set, or spelled in another way.
std::vector<CategoryId> ids_of_truth(const NetworkClasses& network, const AnnotationSet& truth) {
  auto match = match_classes(network, truth.categories);
  if (match.lacking.empty()) return std::move(match.category_ids);
  SSD_VALIDATE(match.unknown.empty(), "{}; give the truth of the classes that it was trained on",
               describe_unknown(network, "the truth", match.unknown.front()));
  log_info(
      "the truth has {} of the {} classes of {}; detections of the others, the first is '{}', get category "
      "ids that it does not use",
      network.names.size() - match.lacking.size(), network.names.size(), network.whose,
      network.names[match.lacking.front()]);
  return std::move(match.category_ids);
}

}  // namespace

std::vector<Category> class_table(const CheckpointItem& root, const AnnotationSet* truth) {
  const int count = count_classes(root);
  const auto names = class_names_of(root);
  if (!names && truth != nullptr) {
    SSD_VALIDATE(truth->categories.size() == static_cast<std::size_t>(count),
                 "checkpoint '{}': it has no names for its {} classes, and the truth has {} categories",
                 root.source(), count, truth->categories.size());
    log_info("checkpoint '{}': it has no names for its classes; taken are the truth's, in their order",
             root.source());
    return truth->categories;
  }
  std::vector<CategoryId> ids;
  if (truth != nullptr)
    ids = ids_of_truth({fmt::format("checkpoint '{}'", root.source()), *names, {}}, *truth);
  std::vector<Category> classes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const auto label = static_cast<std::int64_t>(i) + 1;
    classes.push_back({truth == nullptr ? CategoryId(label) : ids[i],
                       names ? (*names)[i] : fmt::format("class {}", label)});
  }
  return classes;
}

}  // namespace ssd
