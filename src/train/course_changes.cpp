#include "train/course_changes.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace ssd {
namespace {

constexpr std::array kCourseOptions{"learning-rate", "momentum",      "weight-decay",    "warmup",
                                    "multistep",     "skip-crowd",    "crop-side",       "crop-aspect",
                                    "hue",           "saturation",    "contrast",        "brightness",
                                    "fp16",          "gradient-type", "flip-probability"};

std::optional<std::string_view> value_of(std::string_view configuration, std::string_view name) {
  const auto beginning = fmt::format("{} = ", name);
  std::size_t at = 0;
  while (at < configuration.size()) {
    const auto end = std::min(configuration.find('\n', at), configuration.size());
    const auto line = configuration.substr(at, end - at);
    if (line.starts_with(beginning)) return line.substr(beginning.size());
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> course_changes(std::string_view then, std::string_view now) {
  std::vector<std::string> changes;
  for (const char* name : kCourseOptions) {
    const auto before = value_of(then, name), after = value_of(now, name);
    if (before && after && *before != *after)
      changes.push_back(fmt::format("--{} {} (then {})", name, *after, *before));
  }
  return changes;
}

}  // namespace ssd
