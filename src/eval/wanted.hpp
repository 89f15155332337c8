// The images and categories that --images and --categories name. Throws UsageError or Error with what is
// wrong; an empty list means all.
#pragma once

#include <string>
#include <vector>

#include "coco/annotations.hpp"

namespace ssd {

// "1,2,3", or the name of a file of ids with white space or commas between.
std::vector<ImageId> wanted_images(const std::string& text);

// Each word is the name of a category, or its id.
std::vector<CategoryId> wanted_categories(const std::vector<std::string>& words, const AnnotationSet& set);

}  // namespace ssd
