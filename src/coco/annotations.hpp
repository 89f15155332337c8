// COCO detection annotations: categories, images, boxes. Plain data; no torch, no MPI.
//
// What a caller can get wrong: duplicate annotation ids and id 0 are let through, since an evaluation must
// see them as they are (resolve_ground_truth in coco/match.hpp); boxes of no size (width or height 0) too.
// file_name is empty where the JSON has none. Reading holds the file without its masks in memory. Thread
// safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
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

enum class AnnotationProblemKind {
  bad_category,  // a field is missing or not what it should be
  duplicate_category_id,
  bad_image,
  duplicate_image_id,
  bad_annotation,
  bad_box,        // not 4 finite numbers, or a negative width or height
  unknown_image,  // an annotation of an image that is not in the file
  unknown_category,
};

// A few words for a report that groups problems: "annotations of an image that is not in the file".
const char* describe(AnnotationProblemKind kind);

struct AnnotationProblem {
  AnnotationProblemKind kind{};
  std::size_t index = 0;           // of the record in its array of the JSON
  std::optional<std::int64_t> id;  // the record's, where it has a readable one
  std::string text;                // one line: file, array, index, id, field, value
};

enum class AnnotationUse {
  all,
  scores  // what an evaluation looks at: images without names and sizes, categories without a name have their id
};

// Reads an instances_*.json. Throws Error with file, record and value where it is not what it should be: the
// first problem, and how many more there are. Fields that the use has no need of are not looked at.
AnnotationSet read_annotations(const std::filesystem::path& path, AnnotationUse use = AnnotationUse::all);

// The same, but records that are not what they should be are left out of the set and described in problems
// (appended). Still throws Error where the file as a whole cannot be used: unreadable, not JSON, cut off, an
// array missing.
AnnotationSet read_annotations(const std::filesystem::path& path, std::vector<AnnotationProblem>& problems);

}  // namespace ssd
