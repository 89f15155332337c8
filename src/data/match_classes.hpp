// The classes of a network meet the categories of a set that it is run on: which label is which category.
// Names decide; ids, where both are known, must not contradict them. Two categories may have one name: then
// those of one id belong together, else they do in their order. Pure, no torch.
#pragma once

#include <string>
#include <vector>

#include "coco/annotations.hpp"

namespace ssd {

// What a network tells apart, in the order of its labels 1, 2, ...
struct NetworkClasses {
  std::string whose;  // for messages: "the train shards"
  std::vector<std::string> names;
  std::vector<CategoryId> ids;  // of the set it is trained on; empty where they are not known
};

// Throws Error for a name that is not UTF-8, with which no checkpoint could be written.
NetworkClasses network_classes(std::string whose, const std::vector<Category>& categories);

struct ClassMatch {
  // Of each label: the category's id in the set; where the set lacks the class, an id that no category of the
  // set has, the network's own if it can be.
  std::vector<CategoryId> category_ids;
  std::vector<std::size_t> lacking;  // classes of the network that the set lacks: places in `names`
  std::vector<Category> unknown;     // categories of the set that the network does not tell apart
};
ClassMatch match_classes(const NetworkClasses& network, const std::vector<Category>& categories);

// An error's text for a category that the network does not tell apart. set: "the truth".
std::string describe_unknown(const NetworkClasses& network, const std::string& set, const Category& category);

// The category ids of the labels, for a set that may lack some of the classes. Throws Error, which ends with
// the remedy, for the first category that the network does not tell apart, or whose id has another name
// there.
std::vector<CategoryId> expect_known_classes(const NetworkClasses& network, const std::string& set,
                                             const std::vector<Category>& categories,
                                             const std::string& remedy);

}  // namespace ssd
