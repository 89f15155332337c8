#include "preprocess/sources.hpp"

#include "core/error.hpp"
#include "core/log.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

SplitSource coco_source(const fs::path& coco, Split split) {
  const auto name = fmt::format("{}2017", split_name(split));
  return {split, coco / "annotations" / fmt::format("instances_{}.json", name), coco / name};
}

}  // namespace

std::vector<SplitSource> find_sources(const PreprocessOptions& options) {
  if (options.coco.empty()) return {{*options.split, options.annotations, options.images}};
  SSD_VALIDATE(fs::is_directory(options.coco), "no folder '{}'", options.coco.string());
  std::vector<SplitSource> sources;
  for (const auto split : {Split::train, Split::val}) {
    if (options.split && *options.split != split) continue;
    auto source = coco_source(options.coco, split);
    if (fs::exists(source.annotations)) {
      sources.push_back(std::move(source));
    } else {
      SSD_VALIDATE(!options.split, "no file '{}'", source.annotations.string());
      log_info("no file '{}': there will be no {} shards", source.annotations.string(), split_name(split));
    }
  }
  SSD_VALIDATE(!sources.empty(),
               "'{}' is not laid out as COCO (no annotations/instances_train2017.json, no "
               "annotations/instances_val2017.json); name the parts with --split, --annotations and --images",
               options.coco.string());
  return sources;
}

fs::path find_images_nearby(const fs::path& images, const std::string& file_name) {
  std::error_code error;
  auto here = images.lexically_normal();
  if (!here.has_filename()) here = here.parent_path();
  for (const auto& folder : {here, here.parent_path()}) {
    if (fs::is_regular_file(folder / file_name, error)) return folder;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      std::error_code ignored;
      if (fs::is_regular_file(entry->path() / file_name, ignored)) return entry->path();
    }
  }
  return {};
}

}  // namespace ssd
