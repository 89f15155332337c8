// Pascal VOC sets: a folder with ImageSets/Main/<list>.txt, Annotations/<name>.xml and JPEGImages, read into
// what a COCO JSON would hold, so that the same pictures and boxes give the same shards. A picture is the
// file that its XML calls <filename>, else <name> with .jpg, .jpeg, .png, .webp or .bmp in any case. Lists
// may name images with folders and endings. XML files are read in the encoding that they declare; all text
// that leaves is UTF-8.
//
// What a caller can get wrong: VOC has no ids. The image id is the number made of all digits of the name,
// plus 1 (so that 00000 has one too); where two images of the list would share an id, or a name has no
// digits, ids are 1, 2, ... in the list's order. Boxes are xmin, ymin, xmax - xmin, ymax - ymin, as most
// converters have it, and boxes of no size are left out and counted in the log. A "difficult" object becomes
// a crowd box: VOC's evaluation and COCO's leave them out of the count.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "coco/annotations.hpp"

namespace ssd {

struct VocSource {
  std::filesystem::path folder;
  std::string image_set;             // a list in ImageSets/Main, without .txt
  std::vector<std::string> classes;  // in the order of their labels: category ids 1, 2, ...
};

// JPEGImages in the folder.
std::filesystem::path voc_pictures(const std::filesystem::path& folder);

// ImageSets/Main/<image_set>.txt in the folder.
std::filesystem::path voc_list_path(const std::filesystem::path& folder, const std::string& image_set);

// The class names of all files in Annotations, in alphabetical order: the same for every list of the set.
// Throws Error.
std::vector<std::string> find_voc_classes(const std::filesystem::path& folder);

// As read_annotations (coco/annotations.hpp): what is wrong with single images and objects goes into
// problems, Error is thrown where the list is missing or empty.
AnnotationSet read_voc(const VocSource& source, std::vector<AnnotationProblem>& problems);

}  // namespace ssd
