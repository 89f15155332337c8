#include "preprocess/other_split.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/read_text_file.hpp"
#include "record/file_names.hpp"

namespace ssd {
namespace {

// Of the manifest; nothing where there is none, or where it is damaged: whoever opens the set says so.
std::optional<std::vector<Category>> categories_in(const std::filesystem::path& manifest) {
  std::error_code ignored;
  if (!std::filesystem::exists(manifest, ignored)) return std::nullopt;
  const auto json = nlohmann::json::parse(read_text_file(manifest), nullptr, false);
  if (!json.is_object() || !json.contains("categories")) return std::nullopt;
  std::vector<Category> categories;
  try {
    for (const auto& entry : json["categories"])
      categories.push_back(
          {CategoryId(entry.at("id").get<std::int64_t>()), entry.at("name").get<std::string>()});
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  return categories;
}

const Category* find_name(const std::vector<Category>& categories, const std::string& name) {
  const auto found = std::find_if(categories.begin(), categories.end(),
                                  [&](const Category& category) { return category.name == name; });
  return found == categories.end() ? nullptr : &*found;
}

const Category* find_id(const std::vector<Category>& categories, CategoryId id) {
  const auto found = std::find_if(categories.begin(), categories.end(),
                                  [&](const Category& category) { return category.id == id; });
  return found == categories.end() ? nullptr : &*found;
}

std::string name_of_id(const std::vector<Category>& categories, CategoryId id) {
  const auto* found = find_id(categories, id);
  return found == nullptr ? "no class" : fmt::format("'{}'", found->name);
}

}  // namespace

void compare_with_other_split(const std::filesystem::path& folder, Split split,
                              const std::vector<Category>& categories) {
  const Split other = split == Split::train ? Split::val : Split::train;
  const auto packed = categories_in(folder / manifest_file_name(other));
  if (!packed) return;
  const auto& train = split == Split::train ? categories : *packed;
  const auto& val = split == Split::train ? *packed : categories;
  for (const auto& category : val) {
    const auto* same = find_name(train, category.name);
    SSD_VALIDATE(
        same != nullptr,
        "the val split has the class '{}' (id {}), which the train split lacks (its id {} is {}): both "
        "splits in '{}' must have the same classes; correct the names, or pack into another folder",
        category.name, category.id.value(), category.id.value(), name_of_id(train, category.id),
        folder.string());
    if (same->id == category.id) continue;
    SSD_VALIDATE(
        find_id(train, category.id) == nullptr,
        "the category id {} is '{}' in the val split and {} in the train split: give both splits in '{}' the "
        "same ids and names, or pack into another folder",
        category.id.value(), category.name, name_of_id(train, category.id), folder.string());
    log_warning(
        "the class '{}' has the id {} in the train split and {} in the val split: classes are matched by "
        "name",
        category.name, same->id.value(), category.id.value());
  }
}

}  // namespace ssd
