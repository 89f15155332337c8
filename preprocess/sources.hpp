// Where the annotations and pictures of each split are.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "preprocess/options.hpp"
#include "preprocess/voc.hpp"
#include "record/split.hpp"

namespace ssd {

struct SplitSource {
  Split split = Split::train;
  std::filesystem::path annotations;  // a COCO-style JSON; of a VOC set the list of its images
  std::filesystem::path images;
  std::optional<VocSource> voc;
};

// Throws Error where nothing is found, with what was looked for.
std::vector<SplitSource> find_sources(const PreprocessOptions& options);

// The folder near `images` in which a file of this name is; empty where there is none. For "did you mean".
std::filesystem::path find_images_nearby(const std::filesystem::path& images, const std::string& file_name);

}  // namespace ssd
