// Which pictures are looked at, with the image id of each, and the names of the files that are drawn of them.
// No torch.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "coco/annotations.hpp"
#include "image/jpeg.hpp"

namespace ssd {

struct Picture {
  std::filesystem::path path;
  ImageId id;
  const ImageEntry* truth = nullptr;  // in the set given to list_pictures; null without one
};

struct PictureList {
  std::vector<Picture> pictures;      // in the order of the inputs, those of a folder by name; each file once
  std::vector<std::string> problems;  // one line each: inputs that give no picture
  std::size_t not_in_truth_count = 0;  // pictures of folders that the truth does not name, which are left out
};

// truth: null, or a set that outlives the list. A picture is the image of the truth whose file_name is the
// end of the picture's path (whole names of folders). Whether a file named as an input exists shows when it
// is read.
PictureList list_pictures(std::span<const std::filesystem::path> inputs, const AnnotationSet* truth);

// Names without folder, extension as given (".jpg"): that of the picture; with its image id where two would
// be equal.
std::vector<std::string> drawing_names(std::span<const Picture> pictures, const std::string& extension);

// The orientation (EXIF, 1 to 8) to apply, so that boxes fit: of the two rasters, as stored and as turned,
// the one of the truth's size; as turned where there is no truth. Throws Error where neither has that size.
int choose_orientation(const JpegInfo& info, const ImageEntry* truth);

}  // namespace ssd
