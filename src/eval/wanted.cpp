#include "eval/wanted.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/error.hpp"
#include "core/read_text_file.hpp"

namespace ssd {
namespace {

std::optional<std::int64_t> integer_of(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

}  // namespace

std::vector<ImageId> wanted_images(const std::string& text) {
  constexpr std::string_view kBetween = ", \t\r\n";
  if (text.empty()) return {};
  const bool is_file = std::filesystem::is_regular_file(text);
  const auto list = is_file ? read_text_file(text) : text;
  std::vector<ImageId> ids;
  std::size_t begin = list.find_first_not_of(kBetween);
  while (begin != std::string::npos) {
    const auto end = std::min(list.find_first_of(kBetween, begin), list.size());
    const auto word = std::string_view(list).substr(begin, end - begin);
    const auto id = integer_of(word);
    if (!id) {
      throw UsageError(
          is_file ? fmt::format("--images '{}': '{}' in it is not an image id", text, word)
                  : fmt::format("--images: '{}' is not an image id, nor '{}' a file of them", word, text));
    }
    ids.emplace_back(*id);
    begin = list.find_first_not_of(kBetween, end);
  }
  if (ids.empty()) throw UsageError(fmt::format("--images '{}': there is no image id in it", text));
  return ids;
}

std::vector<CategoryId> wanted_categories(const std::vector<std::string>& words, const AnnotationSet& set) {
  std::vector<CategoryId> ids;
  for (const auto& word : words) {
    const auto named = std::find_if(set.categories.begin(), set.categories.end(),
                                    [&](const Category& category) { return category.name == word; });
    if (named != set.categories.end()) {
      ids.push_back(named->id);
      continue;
    }
    const auto id = integer_of(word);
    if (!id) throw UsageError(fmt::format("--categories: '{}' is not a category of the ground truth", word));
    ids.emplace_back(*id);
  }
  return ids;
}

}  // namespace ssd
