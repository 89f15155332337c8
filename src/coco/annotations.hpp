// COCO detection annotations: categories, images, boxes. Plain data; no torch, no MPI.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/ids.hpp"

namespace ssd {

struct Category {
  CategoryId id;
  std::string name;
};

struct ImageEntry {
  ImageId id;
  std::string file_name;
  // Pixels of the raster that the boxes are drawn on; 0 where the JSON does not say.
  int width = 0;
  int height = 0;
};

using BoxXywh = std::array<double, 4>;  // left, top, width, height in pixels, as COCO writes it

struct Annotation {
  std::int64_t id = 0;
  ImageId image_id;
  CategoryId category_id;
  BoxXywh bbox_xywh{};
  double area = 0;  // pixels^2; width * height where the JSON has none
  bool is_crowd = false;
};

struct AnnotationSet {
  std::vector<Category> categories;  // in the order of the JSON: index + 1 is the label
  std::vector<ImageEntry> images;
  std::vector<Annotation> annotations;  // in the order of the JSON
  std::size_t missing_area_count = 0;
  std::size_t missing_iscrowd_count = 0;
};

// Reads an instances_*.json. Throws Error with file, record and value where it is not what it should be.
AnnotationSet read_annotations(const std::filesystem::path& path);

}  // namespace ssd
