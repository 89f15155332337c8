#include "preprocess/findings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ssd {

void Findings::add(std::string_view kind, std::string text) {
  ++count_;
  auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.kind == kind; });
  if (group == groups_.end()) group = groups_.insert(group, {std::string(kind), 0, {}});
  ++group->count;
  if (group->texts.size() < kListed) group->texts.push_back(std::move(text));
}

std::vector<std::string> Findings::lines(std::string_view prefix) const {
  std::vector<std::string> lines;
  for (const auto& group : groups_) {
    lines.push_back(fmt::format("{}: {} {}:", prefix, group.count, group.kind));
    for (const auto& text : group.texts) lines.push_back("  " + text);
    if (group.count > group.texts.size())
      lines.push_back(fmt::format("  ... and {} more", group.count - group.texts.size()));
  }
  return lines;
}

}  // namespace ssd
