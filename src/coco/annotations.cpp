#include "coco/annotations.hpp"

#include <limits>
#include <unordered_set>
#include <utility>

#include "coco/json_fields.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

using Kind = AnnotationProblemKind;

// The problems of one record, put together when its id is known: fields come in any order.
class RecordProblems {
 public:
  RecordProblems(const std::string& file, const char* array, std::size_t index)
      : file_(file), array_(array), index_(index) {}

  void add(Kind kind, std::string complaint) { found_.emplace_back(kind, std::move(complaint)); }
  bool empty() const { return found_.empty(); }

  void append_to(std::vector<AnnotationProblem>& problems, std::optional<std::int64_t> id) const {
    const auto name =
        id ? fmt::format("{}[{}] (id {})", array_, index_, *id) : fmt::format("{}[{}]", array_, index_);
    for (const auto& [kind, complaint] : found_) {
      problems.push_back({kind, index_, id, fmt::format("'{}': {}: {}", file_, name, complaint)});
    }
  }

 private:
  const std::string& file_;
  const char* array_;
  std::size_t index_;
  std::vector<std::pair<Kind, std::string>> found_;
};

// Reads a field into target; where that fails, adds "<key> <complaint>".
template <class T, class Read>
void read_field(const char* key, JsonValue value, std::optional<T>& target, Read read, Kind kind,
                RecordProblems& problems) {
  std::string complaint;
  target = read(value, complaint);
  if (!target) {
    const char* space = complaint.starts_with('[') ? "" : " ";  // "bbox[0] is ..."
    problems.add(kind, fmt::format("{}{}{}", key, space, complaint));
  }
}

// null says as little as a field that is missing: 0.
std::optional<std::int64_t> read_side(JsonValue value, std::string& complaint) {
  if (value.is_null()) return 0;
  return read_integer(value, complaint);
}

// Everything of one reading: where records and problems go.
class Reader {
 public:
  Reader(std::string file, AnnotationUse use, std::vector<AnnotationProblem>& problems)
      : file_(std::move(file)), use_(use), problems_(problems) {}

  AnnotationSet read(const std::filesystem::path& path) {
    read_json_file(path, [this](simdjson::ondemand::document& document) { read_document(document); });
    SSD_VALIDATE(has_images_, "'{}' has no \"images\" array; is it a COCO annotation file?", file_);
    SSD_VALIDATE(has_categories_, "'{}' has no \"categories\" array; is it a COCO detection annotation file?",
                 file_);
    SSD_VALIDATE(has_annotations_, "'{}' has no \"annotations\" array; is it a COCO annotation file?", file_);
    keep_unique(set_.categories, category_indices_, "categories", Kind::duplicate_category_id, category_ids_);
    keep_unique(set_.images, image_indices_, "images", Kind::duplicate_image_id, image_ids_);
    keep_known_annotations();
    return std::move(set_);
  }

 private:
  void read_document(simdjson::ondemand::document& document) {
    simdjson::ondemand::object root;
    if (document.get_object().get(root) != simdjson::SUCCESS) {
      // A document cut off is told apart by simdjson; anything else at the top is another kind of file.
      const auto type = document.type();
      SSD_VALIDATE(
          type.error() != simdjson::SUCCESS || type.value_unsafe() == simdjson::ondemand::json_type::object,
          "'{}' is not a COCO annotation file: its top is not an object; a file of detections, perhaps?",
          file_);
      throw simdjson::simdjson_error(simdjson::INCOMPLETE_ARRAY_OR_OBJECT);
    }
    for (auto field : root) {
      const std::string_view key = field.unescaped_key();
      if (key == "images") {
        has_images_ = true;
        read_array("images", field.value(), &Reader::read_image);
      } else if (key == "categories") {
        has_categories_ = true;
        read_array("categories", field.value(), &Reader::read_category);
      } else if (key == "annotations") {
        has_annotations_ = true;
        read_array("annotations", field.value(), &Reader::read_annotation);
      }
    }
  }

  void read_array(const char* name, JsonValue value,
                  void (Reader::*read_record)(simdjson::ondemand::object, std::size_t)) {
    simdjson::ondemand::array records;
    const auto error = value.get_array().get(records);
    SSD_VALIDATE(error != simdjson::INCORRECT_TYPE,
                 "'{}': \"{}\" is not an array; is it a COCO annotation file?", file_, name);
    if (error != simdjson::SUCCESS) throw simdjson::simdjson_error(error);
    std::size_t index = 0;
    for (auto element : records) {
      simdjson::ondemand::object record;
      if (element.get_object().get(record) == simdjson::SUCCESS) {
        (this->*read_record)(record, index);
      } else {
        const auto kind = name[0] == 'i'   ? Kind::bad_image
                          : name[0] == 'c' ? Kind::bad_category
                                           : Kind::bad_annotation;
        RecordProblems problems(file_, name, index);
        problems.add(kind, "is not an object");
        problems.append_to(problems_, std::nullopt);
      }
      ++index;
    }
  }

  void read_category(simdjson::ondemand::object record, std::size_t index) {
    constexpr Kind kBad = Kind::bad_category;
    RecordProblems problems(file_, "categories", index);
    std::optional<std::int64_t> id;
    std::optional<std::string> name;
    bool has_id = false;
    bool has_name = false;
    for (auto field : record) {
      const std::string_view key = field.unescaped_key();
      if (key == "id") {
        has_id = true;
        read_field("id", field.value(), id, read_integer, kBad, problems);
      } else if (key == "name" && use_ == AnnotationUse::scores) {
        std::string ignored;
        name = read_string(field.value(), ignored);
      } else if (key == "name") {
        has_name = true;
        read_field("name", field.value(), name, read_string, kBad, problems);
      }
    }
    if (!has_id) problems.add(kBad, "has no id");
    if (!has_name && use_ == AnnotationUse::all) problems.add(kBad, "has no name");
    if (!name && use_ == AnnotationUse::scores && id) name = fmt::format("category {}", *id);
    if (!problems.empty()) return problems.append_to(problems_, id);
    set_.categories.push_back({CategoryId(*id), std::move(*name)});
    category_indices_.push_back(index);
  }

  void read_image(simdjson::ondemand::object record, std::size_t index) {
    constexpr Kind kBad = Kind::bad_image;
    RecordProblems problems(file_, "images", index);
    std::optional<std::int64_t> id;
    std::optional<std::string> file_name = std::string();
    std::optional<std::int64_t> width = 0;
    std::optional<std::int64_t> height = 0;
    bool has_id = false;
    for (auto field : record) {
      const std::string_view key = field.unescaped_key();
      if (key == "id") {
        has_id = true;
        read_field("id", field.value(), id, read_integer, kBad, problems);
      } else if (use_ == AnnotationUse::scores) {
        continue;
      } else if (key == "file_name") {
        read_field("file_name", field.value(), file_name, read_string, kBad, problems);
      } else if (key == "width") {
        read_field("width", field.value(), width, read_side, kBad, problems);
      } else if (key == "height") {
        read_field("height", field.value(), height, read_side, kBad, problems);
      }
    }
    if (!has_id) problems.add(kBad, "has no id");
    constexpr auto kLargest = std::numeric_limits<int>::max();
    if (width && (*width < 0 || *width > kLargest))
      problems.add(kBad, fmt::format("width {} is no size", *width));
    if (height && (*height < 0 || *height > kLargest)) {
      problems.add(kBad, fmt::format("height {} is no size", *height));
    }
    if (!problems.empty()) return problems.append_to(problems_, id);
    set_.images.push_back(
        {ImageId(*id), std::move(*file_name), static_cast<int>(*width), static_cast<int>(*height)});
    image_indices_.push_back(index);
  }

  void read_annotation(simdjson::ondemand::object record, std::size_t index) {
    constexpr Kind kBad = Kind::bad_annotation;
    RecordProblems problems(file_, "annotations", index);
    std::optional<std::int64_t> id;
    std::optional<std::int64_t> image_id;
    std::optional<std::int64_t> category_id;
    std::optional<BoxXywh> box;
    std::optional<double> area;
    std::optional<bool> is_crowd;
    bool has_id = false, has_image_id = false, has_category_id = false, has_box = false, has_area = false,
         has_iscrowd = false;
    for (auto field : record) {
      const std::string_view key = field.unescaped_key();
      if (key == "id") {
        has_id = true;
        read_field("id", field.value(), id, read_integer, kBad, problems);
      } else if (key == "image_id") {
        has_image_id = true;
        read_field("image_id", field.value(), image_id, read_integer, kBad, problems);
      } else if (key == "category_id") {
        has_category_id = true;
        read_field("category_id", field.value(), category_id, read_integer, kBad, problems);
      } else if (key == "bbox") {
        has_box = true;
        read_field("bbox", field.value(), box, read_box, Kind::bad_box, problems);
      } else if (key == "area") {
        has_area = true;
        read_field("area", field.value(), area, read_number, kBad, problems);
      } else if (key == "iscrowd") {
        has_iscrowd = true;
        read_field("iscrowd", field.value(), is_crowd, read_flag, kBad, problems);
      }
    }
    if (!has_id) problems.add(kBad, "has no id");
    if (!has_image_id) problems.add(kBad, "has no image_id");
    if (!has_category_id) problems.add(kBad, "has no category_id");
    if (!has_box) problems.add(Kind::bad_box, "has no bbox");
    if (box && ((*box)[2] < 0 || (*box)[3] < 0)) {
      problems.add(Kind::bad_box,
                   fmt::format("bbox [{}] has a negative width or height; boxes are left, top, width, height",
                               fmt::join(*box, ", ")));
    }
    if (area && *area < 0) problems.add(kBad, fmt::format("area {} is negative", *area));
    if (!problems.empty()) return problems.append_to(problems_, id);
    set_.annotations.push_back({*id, ImageId(*image_id), CategoryId(*category_id), *box,
                                area.value_or((*box)[2] * (*box)[3]), is_crowd.value_or(false)});
    annotation_origins_.push_back({index, has_area, has_iscrowd});
  }

  // Keeps the first record of each id. indices: of the records in the JSON.
  template <class Record, class RecordId>
  void keep_unique(std::vector<Record>& records, const std::vector<std::size_t>& indices, const char* array,
                   Kind kind, std::unordered_set<RecordId>& ids) {
    ids.reserve(records.size());
    std::size_t kept = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const auto id = records[i].id;
      if (ids.insert(id).second) {
        if (kept != i) records[kept] = std::move(records[i]);
        ++kept;
        continue;
      }
      RecordProblems problems(file_, array, indices[i]);
      problems.add(kind, "its id was used before");
      problems.append_to(problems_, id.value());
    }
    records.resize(kept);
  }

  void keep_known_annotations() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < set_.annotations.size(); ++i) {
      const auto& annotation = set_.annotations[i];
      const auto& origin = annotation_origins_[i];
      RecordProblems problems(file_, "annotations", origin.index);
      if (!image_ids_.contains(annotation.image_id)) {
        problems.add(Kind::unknown_image,
                     fmt::format("image_id {} is not among the images", annotation.image_id.value()));
      }
      if (!category_ids_.contains(annotation.category_id)) {
        problems.add(Kind::unknown_category, fmt::format("category_id {} is not among the categories",
                                                         annotation.category_id.value()));
      }
      problems.append_to(problems_, annotation.id);
      if (!problems.empty()) continue;
      if (!origin.has_area) ++set_.missing_area_count;
      if (!origin.has_iscrowd) ++set_.missing_iscrowd_count;
      if (kept != i) set_.annotations[kept] = annotation;
      ++kept;
    }
    set_.annotations.resize(kept);
  }

  struct AnnotationOrigin {
    std::size_t index;  // in the JSON
    bool has_area;
    bool has_iscrowd;
  };

  std::string file_;
  AnnotationUse use_;
  std::vector<AnnotationProblem>& problems_;
  AnnotationSet set_;
  bool has_images_ = false;
  bool has_categories_ = false;
  bool has_annotations_ = false;
  std::vector<std::size_t> category_indices_;
  std::vector<std::size_t> image_indices_;
  std::vector<AnnotationOrigin> annotation_origins_;
  std::unordered_set<CategoryId> category_ids_;
  std::unordered_set<ImageId> image_ids_;
};

}  // namespace

const char* describe(AnnotationProblemKind kind) {
  switch (kind) {
    case Kind::bad_category:
      return "categories with a field that is missing or wrong";
    case Kind::duplicate_category_id:
      return "categories whose id was used before";
    case Kind::bad_image:
      return "images with a field that is missing or wrong";
    case Kind::duplicate_image_id:
      return "images whose id was used before";
    case Kind::bad_annotation:
      return "annotations with a field that is missing or wrong";
    case Kind::bad_box:
      return "annotations whose bbox is missing, not 4 finite numbers, or of negative size";
    case Kind::unknown_image:
      return "annotations of an image that is not in the file";
    case Kind::unknown_category:
      return "annotations of a category that is not in the file";
  }
  return "unknown problem";
}

AnnotationSet read_annotations(const std::filesystem::path& path, std::vector<AnnotationProblem>& problems) {
  return Reader(path.string(), AnnotationUse::all, problems).read(path);
}

AnnotationSet read_annotations(const std::filesystem::path& path, AnnotationUse use) {
  std::vector<AnnotationProblem> problems;
  auto set = Reader(path.string(), use, problems).read(path);
  if (problems.size() == 1) throw Error(problems.front().text);
  if (problems.size() > 1) {
    throw Error(fmt::format("{} (and {} more in the file)", problems.front().text, problems.size() - 1));
  }
  return set;
}

}  // namespace ssd
