#include "preprocess/sources.hpp"

#include "core/error.hpp"
#include "core/log.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

SplitSource coco_source(const fs::path& coco, Split split) {
  const auto name = fmt::format("{}2017", split_name(split));
  return {split, coco / "annotations" / fmt::format("instances_{}.json", name), coco / name, std::nullopt};
}

SplitSource voc_source(const PreprocessOptions& options, Split split) {
  const std::string image_set = options.image_set.empty() ? split_name(split) : options.image_set;
  return {split, voc_list_path(options.voc, image_set), voc_pictures(options.voc),
          VocSource{options.voc, image_set, options.classes}};
}

// The sources of the splits asked for. A file of annotations that is missing is an error where its split was
// asked for by name.
template <class MakeSource>
std::vector<SplitSource> existing_sources(const PreprocessOptions& options, MakeSource make_source) {
  std::vector<SplitSource> sources;
  for (const auto split : {Split::train, Split::val}) {
    if (options.split && *options.split != split) continue;
    auto source = make_source(split);
    if (fs::exists(source.annotations)) {
      sources.push_back(std::move(source));
    } else {
      SSD_VALIDATE(!options.split, "no file '{}'", source.annotations.string());
      log_info("no file '{}': there will be no {} shards", source.annotations.string(), split_name(split));
    }
  }
  return sources;
}

std::vector<SplitSource> find_voc_sources(const PreprocessOptions& options) {
  SSD_VALIDATE(fs::is_directory(options.voc), "no folder '{}'", options.voc.string());
  auto sources = existing_sources(options, [&](Split split) { return voc_source(options, split); });
  SSD_VALIDATE(!sources.empty(),
               "'{}' is not laid out as Pascal VOC (no ImageSets/Main/train.txt, no ImageSets/Main/val.txt)",
               options.voc.string());
  if (!options.classes.empty()) return sources;
  const auto classes = find_voc_classes(options.voc);
  for (auto& source : sources) source.voc->classes = classes;
  return sources;
}

}  // namespace

std::vector<SplitSource> find_sources(const PreprocessOptions& options) {
  if (!options.voc.empty()) return find_voc_sources(options);
  if (options.coco.empty()) return {{*options.split, options.annotations, options.images, std::nullopt}};
  SSD_VALIDATE(fs::is_directory(options.coco), "no folder '{}'", options.coco.string());
  auto sources = existing_sources(options, [&](Split split) { return coco_source(options.coco, split); });
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
