#include "infer/picture_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/error.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

bool is_picture_name(const fs::path& path) {
  auto extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  constexpr std::string_view kEndings[] = {".jpg", ".jpeg", ".png", ".webp", ".bmp"};
  return std::find(std::begin(kEndings), std::end(kEndings), extension) != std::end(kEndings);
}

// Whether the last names of the path are those of the end, all of them.
bool ends_with(const fs::path& path, const fs::path& end) {
  auto name = path.end();
  for (auto wanted = end.end(); wanted != end.begin();) {
    if (name == path.begin() || *--name != *--wanted) return false;
  }
  return true;
}

// The images of a truth by the last part of their file names.
class TruthImages {
 public:
  explicit TruthImages(const AnnotationSet& truth) {
    for (const auto& image : truth.images) images_.emplace(path_of(image).filename().string(), &image);
  }

  // The image of a picture; null where there is none. Throws Error where there are several.
  const ImageEntry* find(const fs::path& path) const {
    const ImageEntry* found = nullptr;
    const auto [first, last] = images_.equal_range(path.filename().string());
    for (auto candidate = first; candidate != last; ++candidate) {
      const auto& image = *candidate->second;
      if (!ends_with(path, path_of(image).lexically_normal())) continue;
      SSD_VALIDATE(found == nullptr, "'{}': the truth has two images of this file name, {} and {}",
                   path.string(), found->id.value(), image.id.value());
      found = &image;
    }
    return found;
  }

 private:
  // Windows programs write backslashes.
  static fs::path path_of(const ImageEntry& image) {
    auto name = image.file_name;
    std::replace(name.begin(), name.end(), '\\', '/');
    return name;
  }

  std::unordered_multimap<std::string, const ImageEntry*> images_;
};

class Lister {
 public:
  explicit Lister(const AnnotationSet* truth) {
    if (truth != nullptr) truth_.emplace(*truth);
  }

  PictureList list(std::span<const fs::path> inputs) {
    for (const auto& input : inputs) {
      std::error_code error;
      if (fs::is_directory(input, error)) {
        add_folder(input);
      } else {
        add_picture(input, Origin::named);
      }
    }
    return std::move(list_);
  }

 private:
  enum class Origin { named, folder };

  void add_folder(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      std::error_code ignored;
      if (is_picture_name(entry->path()) && !entry->is_directory(ignored)) files.push_back(entry->path());
    }
    if (error) return list_.problems.push_back(fmt::format("'{}': {}", folder.string(), error.message()));
    if (files.empty()) {
      return list_.problems.push_back(
          fmt::format("'{}': no .jpg, .jpeg, .png, .webp or .bmp file in this folder", folder.string()));
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) add_picture(file, Origin::folder);
  }

  void add_picture(const fs::path& path, Origin origin) {
    const auto normal = path.lexically_normal();
    if (!seen_.insert(normal.string()).second) return;
    Picture picture{path, ImageId(static_cast<std::int64_t>(list_.pictures.size() + 1)), nullptr};
    if (truth_) {
      try {
        picture.truth = truth_->find(normal);
      } catch (const Error& error) {
        list_.problems.emplace_back(error.what());
        return;
      }
      if (picture.truth == nullptr && origin == Origin::folder) {
        ++list_.not_in_truth_count;
        return;
      }
      if (picture.truth == nullptr)
        return list_.problems.push_back(
            fmt::format("'{}': the truth has no image of this file name", path.string()));
      picture.id = picture.truth->id;
    }
    list_.pictures.push_back(std::move(picture));
  }

  std::optional<TruthImages> truth_;
  std::unordered_set<std::string> seen_;
  PictureList list_;
};

}  // namespace

PictureList list_pictures(std::span<const fs::path> inputs, const AnnotationSet* truth) {
  return Lister(truth).list(inputs);
}

std::vector<std::string> drawing_names(std::span<const Picture> pictures, const std::string& extension) {
  std::unordered_set<std::string> used;
  std::vector<std::string> names;
  for (const auto& picture : pictures) {
    auto name = picture.path.stem().string();
    while (!used.insert(name).second) name += fmt::format("_{}", picture.id.value());
    names.push_back(name + extension);
  }
  return names;
}

int choose_orientation(const JpegInfo& info, const ImageEntry* truth) {
  if (truth == nullptr) return info.orientation;
  const bool has_size = truth->width > 0 && truth->height > 0;
  if (!has_size || (truth->width == info.width && truth->height == info.height)) return 1;
  SSD_VALIDATE(info.orientation >= 5 && truth->width == info.height && truth->height == info.width,
               "the truth says {} x {} pixels, the picture has {} x {} (EXIF orientation {})", truth->width,
               truth->height, info.width, info.height, info.orientation);
  return info.orientation;
}

}  // namespace ssd
