#include "preprocess/source_set.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "core/error.hpp"
#include "core/log.hpp"
#include "preprocess/findings.hpp"
#include "preprocess/ordered_parallel.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWaitingSizes = 1024;

void group_annotations(SourceSet& source) {
  const auto& set = source.set;
  std::unordered_map<ImageId, std::size_t> places;
  for (std::size_t i = 0; i < set.images.size(); ++i) places.emplace(set.images[i].id, i);
  source.annotations_of.resize(set.images.size());
  for (std::size_t i = 0; i < set.annotations.size(); ++i)
    source.annotations_of[places.at(set.annotations[i].image_id)].push_back(i);
}

// Names that Windows programs wrote, where the file is found with slashes.
void replace_backslashes(SourceSet& source) {
  for (auto& image : source.set.images) {
    if (image.file_name.find('\\') == std::string::npos) continue;
    std::error_code ignored;
    if (fs::exists(source.source.images / image.file_name, ignored)) continue;
    auto name = image.file_name;
    std::replace(name.begin(), name.end(), '\\', '/');
    if (fs::exists(source.source.images / name, ignored)) image.file_name = std::move(name);
  }
}

void warn_of_equal_names(const SourceSet& source) {
  std::unordered_map<std::string_view, CategoryId> ids;
  for (const auto& category : source.set.categories) {
    const auto [other, is_new] = ids.emplace(category.name, category.id);
    if (is_new) continue;
    log_warning("{}: '{}': the categories {} and {} have the same name, '{}'; they are two classes",
                split_name(source.source.split), source.source.annotations.string(), other->second.value(),
                category.id.value(), category.name);
  }
}

void log_problems(const SourceSet& source) {
  Findings findings;
  for (const auto& problem : source.problems) findings.add(describe(problem.kind), problem.text);
  for (const auto& line : findings.lines(split_name(source.source.split))) log_line(line);
}

}  // namespace

SourceSet read_source_set(const SplitSource& source, const MpiComm& world) {
  log_info("{}: reading '{}'", split_name(source.split), source.annotations.string());
  SourceSet result{source, {}, {}, {}};
  result.set = source.voc ? read_voc(*source.voc, result.problems)
                          : read_annotations(source.annotations, result.problems);
  const char* missing = result.set.images.empty()       ? "image"
                        : result.set.categories.empty() ? "category"
                                                        : nullptr;
  if (missing != nullptr) {
    if (world.is_root()) log_problems(result);
    throw Error(
        fmt::format("'{}': no {} in it{}", source.annotations.string(), missing,
                    result.problems.empty() ? "" : " that can be used; what is wrong is listed above"));
  }
  replace_backslashes(result);
  if (world.is_root()) warn_of_equal_names(result);
  group_annotations(result);
  return result;
}

std::vector<std::uint64_t> measure_files(const SourceSet& source, unsigned threads, const MpiComm& world) {
  const auto& images = source.set.images;
  const auto ranks = static_cast<std::size_t>(world.world_size()),
             rank = static_cast<std::size_t>(world.rank());
  const auto first = images.size() * rank / ranks, last = images.size() * (rank + 1) / ranks;
  struct Nothing {};
  const auto size_of = [&](Nothing&, std::size_t i) {
    std::error_code error;
    const auto size = fs::file_size(source.source.images / images[first + i].file_name, error);
    return error ? kNoFile : std::uint64_t{size};
  };
  std::vector<std::uint64_t> own;
  ordered_parallel<Nothing, std::uint64_t>(last - first, {threads, kWaitingSizes}, size_of,
                                           [&](std::size_t, std::uint64_t size) { own.push_back(size); });
  std::vector<std::uint64_t> all;
  for (const auto& bytes : world.gather(std::as_bytes(std::span(own)))) {
    const auto filled = all.size();
    all.resize(filled + bytes.size() / sizeof(std::uint64_t));
    if (!bytes.empty()) std::memcpy(all.data() + filled, bytes.data(), bytes.size());
  }
  all.resize(images.size());
  world.broadcast_in_place(std::as_writable_bytes(std::span(all)));
  return all;
}

void validate_right_folder(const SourceSet& source, const std::vector<std::uint64_t>& file_bytes) {
  if (std::any_of(file_bytes.begin(), file_bytes.end(), [](auto bytes) { return bytes != kNoFile; })) return;
  const auto& images = source.source.images;
  const auto& name = source.set.images.front().file_name;
  const auto nearby = find_images_nearby(images, name);
  const auto looked_for = source.source.voc
                              ? fmt::format(
                                    " (looked for what <filename> says, and for '{}' with .jpg, .jpeg, .png, "
                                    ".webp, .bmp in any case)",
                                    fs::path(name).stem().string())
                              : fmt::format(" (looked for '{}')", name);
  throw Error(fmt::format(
      "{}: 0 of {} images found in '{}'{}", split_name(source.source.split), file_bytes.size(),
      images.string(), nearby.empty() ? looked_for : fmt::format("; did you mean '{}'?", nearby.string())));
}

}  // namespace ssd
