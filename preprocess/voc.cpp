#include "preprocess/voc.hpp"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <pugixml.hpp>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/error.hpp"
#include "core/log.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using Kind = AnnotationProblemKind;

constexpr std::int64_t kLargestNumber =
    1'000'000'000'000'000;  // of a name; a double holds it, as JSON readers do

// Throws Error that names the file.
pugi::xml_document read_xml(const fs::path& path) {
  pugi::xml_document document;
  const auto result = document.load_file(path.c_str());
  SSD_VALIDATE(result.status != pugi::status_file_not_found, "'{}': no such file", path.string());
  SSD_VALIDATE(result, "'{}': not XML: {} at byte {}", path.string(), result.description(), result.offset);
  SSD_VALIDATE(document.child("annotation"), "'{}': no <annotation> in it; is it a VOC annotation file?",
               path.string());
  return document;
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

std::optional<double> number_of(const pugi::xml_node& node) {
  const auto text = trimmed(node.child_value());
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// The first word of each line: lists of one class have a second.
std::vector<std::string> read_list(const fs::path& path) {
  std::ifstream stream(path);
  if (!stream) throw system_error("open", path.string(), errno);
  std::vector<std::string> names;
  for (std::string line; std::getline(stream, line);) {
    const auto text = trimmed(line);
    if (!text.empty()) names.push_back(text.substr(0, text.find_first_of(" \t")));
  }
  SSD_VALIDATE(!names.empty(), "'{}': no image in it", path.string());
  return names;
}

std::optional<std::int64_t> id_of_name(const std::string& name) {
  std::int64_t number = 0;
  bool has_digits = false;
  for (const char letter : name) {
    if (letter < '0' || letter > '9') continue;
    has_digits = true;
    number = 10 * number + (letter - '0');
    if (number > kLargestNumber) return std::nullopt;
  }
  if (!has_digits) return std::nullopt;
  return number + 1;
}

std::vector<ImageId> make_image_ids(const std::vector<std::string>& names) {
  std::vector<ImageId> ids;
  std::unordered_set<std::int64_t> used;
  for (const auto& name : names) {
    const auto id = id_of_name(name);
    if (!id || !used.insert(*id).second) break;
    ids.emplace_back(*id);
  }
  if (ids.size() == names.size()) return ids;
  log_info(
      "image ids are 1, 2, ... in the order of the list: the name '{}' gives none, or one that another image "
      "has",
      names[ids.size()]);
  ids.clear();
  for (std::size_t i = 0; i < names.size(); ++i) ids.emplace_back(static_cast<std::int64_t>(i + 1));
  return ids;
}

class Reader {
 public:
  Reader(const VocSource& source, std::vector<AnnotationProblem>& problems)
      : source_(source), problems_(problems) {
    for (const auto& name : source.classes) {
      const auto id = CategoryId(static_cast<std::int64_t>(set_.categories.size() + 1));
      set_.categories.push_back({id, name});
      categories_.emplace(name, id);
    }
  }

  AnnotationSet read() {
    const auto list = voc_list_path(source_.folder, source_.image_set);
    const auto names = read_list(list);
    std::unordered_set<std::string> seen;
    for (const auto& name : names)
      SSD_VALIDATE(seen.insert(name).second, "'{}': '{}' is in it twice", list.string(), name);
    const auto ids = make_image_ids(names);
    for (std::size_t i = 0; i < names.size(); ++i) read_image(names[i], ids[i], i);
    if (no_size_count_ != 0)
      log_info("'{}': boxes of no size that are left out: {}", list.string(), no_size_count_);
    if (difficult_count_ != 0) {
      log_info("'{}': difficult objects, stored as crowd boxes, which the evaluation does not count: {}",
               list.string(), difficult_count_);
    }
    return std::move(set_);
  }

 private:
  void add_problem(Kind kind, std::size_t index, std::optional<std::int64_t> id, std::string text) {
    problems_.push_back({kind, index, id, std::move(text)});
  }

  // 0 where the file does not say; nothing where it says what is no size.
  static std::optional<int> side_of(const pugi::xml_node& node) {
    if (!node) return 0;
    const auto value = number_of(node);
    if (!value || *value < 0 || *value > std::numeric_limits<int>::max() || *value != std::floor(*value))
      return std::nullopt;
    return static_cast<int>(*value);
  }

  void read_image(const std::string& name, ImageId id, std::size_t index) {
    const auto path = source_.folder / "Annotations" / (name + ".xml");
    pugi::xml_document document;
    try {
      document = read_xml(path);
    } catch (const Error& error) {
      return add_problem(Kind::bad_image, index, id.value(), error.what());
    }
    const auto root = document.child("annotation");
    const auto width = side_of(root.child("size").child("width")),
               height = side_of(root.child("size").child("height"));
    if (!width || !height)
      return add_problem(Kind::bad_image, index, id.value(),
                         fmt::format("'{}': width or height in <size> is no size", path.string()));
    set_.images.push_back({id, name + ".jpg", *width, *height});
    std::size_t place = 0;
    for (const auto object : root.children("object"))
      read_object(object, id, fmt::format("'{}': object[{}]", path.string(), place++));
  }

  void read_object(const pugi::xml_node& object, ImageId image, const std::string& where) {
    const auto bad = [&](Kind kind, std::string_view complaint) {
      add_problem(kind, set_.annotations.size(), std::nullopt, fmt::format("{}: {}", where, complaint));
    };
    const auto name = trimmed(object.child("name").child_value());
    const auto category = categories_.find(name);
    if (category == categories_.end())
      return bad(Kind::unknown_category, fmt::format("the class '{}' is not among the classes", name));
    const auto box = object.child("bndbox");
    const auto xmin = number_of(box.child("xmin")), ymin = number_of(box.child("ymin"));
    const auto xmax = number_of(box.child("xmax")), ymax = number_of(box.child("ymax"));
    if (!xmin || !ymin || !xmax || !ymax)
      return bad(Kind::bad_box, "<bndbox> is missing or not four numbers");
    const double width = *xmax - *xmin, height = *ymax - *ymin;
    if (width < 0 || height < 0) {
      return bad(Kind::bad_box, fmt::format("xmin {} ymin {} xmax {} ymax {}: a negative width or height",
                                            *xmin, *ymin, *xmax, *ymax));
    }
    if (width == 0 || height == 0) {
      ++no_size_count_;
      return;
    }
    const bool is_difficult = trimmed(object.child("difficult").child_value()) == "1";
    difficult_count_ += is_difficult;
    const auto id = static_cast<std::int64_t>(set_.annotations.size() + 1);
    set_.annotations.push_back(
        {id, image, category->second, {*xmin, *ymin, width, height}, width * height, is_difficult});
  }

  const VocSource& source_;
  std::vector<AnnotationProblem>& problems_;
  AnnotationSet set_;
  std::unordered_map<std::string, CategoryId> categories_;
  std::size_t no_size_count_ = 0;
  std::size_t difficult_count_ = 0;
};

}  // namespace

fs::path voc_list_path(const fs::path& folder, const std::string& image_set) {
  return folder / "ImageSets" / "Main" / (image_set + ".txt");
}

std::vector<std::string> find_voc_classes(const fs::path& folder) {
  const auto annotations = folder / "Annotations";
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(annotations, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".xml") continue;
    const auto document = read_xml(entry->path());
    for (const auto object : document.child("annotation").children("object")) {
      auto name = trimmed(object.child("name").child_value());
      if (!name.empty()) names.insert(std::move(name));
    }
  }
  SSD_VALIDATE(!error, "'{}': {}", annotations.string(), error.message());
  SSD_VALIDATE(!names.empty(), "'{}': no class in any XML file of it", annotations.string());
  return {names.begin(), names.end()};
}

AnnotationSet read_voc(const VocSource& source, std::vector<AnnotationProblem>& problems) {
  return Reader(source, problems).read();
}

}  // namespace ssd
