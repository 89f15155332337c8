#include "data/match_classes.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_set>

#include "core/error.hpp"
#include "core/utf8.hpp"

namespace ssd {
namespace {

constexpr std::size_t kMostNames = 8;  // in a message

// Gives each label without a category the first category without a label that `belongs` to it.
template <class Belongs>
void pair_up(std::vector<std::optional<std::size_t>>& category_of_label, std::vector<bool>& is_taken,
             Belongs&& belongs) {
  for (std::size_t label = 0; label < category_of_label.size(); ++label) {
    for (std::size_t i = 0; i < is_taken.size() && !category_of_label[label]; ++i) {
      if (is_taken[i] || !belongs(label, i)) continue;
      category_of_label[label] = i;
      is_taken[i] = true;
    }
  }
}

}  // namespace

NetworkClasses network_classes(std::string whose, const std::vector<Category>& categories) {
  NetworkClasses network{std::move(whose), {}, {}};
  for (const auto& category : categories) {
    SSD_VALIDATE(is_utf8(category.name),
                 "{}: the name of category {}, '{}', is not UTF-8, so that no checkpoint could be written; "
                 "correct it and run ssd_preprocess again",
                 network.whose, category.id.value(), printable(category.name));
    network.names.push_back(category.name);
    network.ids.push_back(category.id);
  }
  return network;
}

ClassMatch match_classes(const NetworkClasses& network, const std::vector<Category>& categories) {
  std::vector<std::optional<std::size_t>> category_of_label(network.names.size());
  std::vector<bool> is_taken(categories.size());
  const auto same_name = [&](std::size_t label, std::size_t i) {
    return network.names[label] == categories[i].name;
  };
  if (!network.ids.empty()) {
    pair_up(category_of_label, is_taken, [&](std::size_t label, std::size_t i) {
      return same_name(label, i) && network.ids[label] == categories[i].id;
    });
  }
  pair_up(category_of_label, is_taken, same_name);

  ClassMatch match;
  std::unordered_set<CategoryId> used;
  for (const auto& category : categories) used.insert(category.id);
  std::int64_t next = 1;
  for (std::size_t label = 0; label < network.names.size(); ++label) {
    if (category_of_label[label]) {
      match.category_ids.push_back(categories[*category_of_label[label]].id);
      continue;
    }
    match.lacking.push_back(label);
    auto id = network.ids.empty() ? CategoryId(next) : network.ids[label];
    while (used.contains(id)) id = CategoryId(next++);
    used.insert(id);
    match.category_ids.push_back(id);
  }
  for (std::size_t i = 0; i < categories.size(); ++i)
    if (!is_taken[i]) match.unknown.push_back(categories[i]);
  return match;
}

std::string describe_unknown(const NetworkClasses& network, const std::string& set,
                             const Category& category) {
  const auto names = std::span(network.names).first(std::min(network.names.size(), kMostNames));
  return fmt::format("{}: category {} '{}' is no class of {}, whose {} classes are {}{}", set,
                     category.id.value(), category.name, network.whose, network.names.size(),
                     fmt::join(names, ", "), names.size() < network.names.size() ? ", ..." : "");
}

std::vector<CategoryId> expect_known_classes(const NetworkClasses& network, const std::string& set,
                                             const std::vector<Category>& categories,
                                             const std::string& remedy) {
  for (const auto& category : categories) {
    const auto same_id = std::find(network.ids.begin(), network.ids.end(), category.id);
    if (same_id == network.ids.end()) continue;
    const auto& name = network.names[static_cast<std::size_t>(same_id - network.ids.begin())];
    SSD_VALIDATE(name == category.name, "{}: category {} is '{}', but in {} it is '{}'; {}", set,
                 category.id.value(), category.name, network.whose, name, remedy);
  }
  auto match = match_classes(network, categories);
  SSD_VALIDATE(match.unknown.empty(), "{}; {}", describe_unknown(network, set, match.unknown.front()),
               remedy);
  return std::move(match.category_ids);
}

}  // namespace ssd
