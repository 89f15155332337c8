#include "preprocess/voc.hpp"

#include <iconv.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <pugixml.hpp>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/read_text_file.hpp"
#include "core/utf8.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using Kind = AnnotationProblemKind;

constexpr std::int64_t kLargestNumber =
    1'000'000'000'000'000;  // of a name; a double holds it, as JSON readers do

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

// The encoding that an XML file declares, in lower case: XML 1.0, section 2.8. Empty where it declares none.
std::string declared_encoding(std::string_view bytes) {
  const auto declaration = bytes.substr(0, bytes.find("?>"));
  const auto name = declaration.find("encoding");
  if (!bytes.starts_with("<?xml") || name == std::string_view::npos) return {};
  const auto quote = declaration.find_first_of("\"'", name);
  if (quote == std::string_view::npos) return {};
  const auto end = declaration.find(declaration[quote], quote + 1);
  if (end == std::string_view::npos) return {};
  std::string encoding(declaration.substr(quote + 1, end - quote - 1));
  std::transform(encoding.begin(), encoding.end(), encoding.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return encoding;
}

struct CloseConverter {
  void operator()(iconv_t converter) const { ::iconv_close(converter); }
};

// Throws Error with the reason alone.
std::string converted_to_utf8(std::string bytes, const std::string& encoding) {
  const iconv_t opened = ::iconv_open("UTF-8", encoding.c_str());
  SSD_VALIDATE(opened != reinterpret_cast<iconv_t>(-1), "its encoding '{}' is not known; save it as UTF-8",
               printable(encoding));
  const std::unique_ptr<std::remove_pointer_t<iconv_t>, CloseConverter> converter(opened);
  std::string text(bytes.size() * 4, '\0');  // no more bytes for each of the input's
  char *in = bytes.data(), *out = text.data();
  std::size_t in_left = bytes.size(), out_left = text.size();
  const bool is_done =
      ::iconv(converter.get(), &in, &in_left, &out, &out_left) != static_cast<std::size_t>(-1);
  SSD_VALIDATE(is_done,
               "it says that it is {}, but its byte {} is not; correct its encoding, or save it as UTF-8",
               printable(encoding), bytes.size() - in_left);
  text.resize(text.size() - out_left);
  return text;
}

// The text of an XML file as UTF-8. Throws Error with the reason alone.
std::string utf8_of_xml(std::string bytes) {
  // With a byte order mark the parser knows.
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff"))
    return converted_to_utf8(bytes, "utf-16");
  const auto encoding = declared_encoding(bytes);
  if (!encoding.empty() && encoding != "utf-8" && encoding != "utf8")
    return converted_to_utf8(std::move(bytes), encoding);
  SSD_VALIDATE(is_utf8(bytes), "it is not UTF-8, and names no other encoding; save it as UTF-8");
  return bytes;
}

// Throws Error that names the file.
pugi::xml_document read_xml(const fs::path& path) {
  std::error_code error;
  SSD_VALIDATE(fs::exists(path, error), "'{}': no such file", path.string());
  std::string text;
  try {
    text = utf8_of_xml(read_text_file(path));
  } catch (const Error& reason) {
    throw Error(fmt::format("'{}': {}", path.string(), reason.what()));
  }
  pugi::xml_document document;
  const auto result =
      document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  SSD_VALIDATE(result, "'{}': not XML: {} at byte {}", path.string(), result.description(), result.offset);
  SSD_VALIDATE(document.child("annotation"), "'{}': no <annotation> in it; is it a VOC annotation file?",
               path.string());
  return document;
}

std::optional<double> number_of(const pugi::xml_node& node) {
  const auto text = trimmed(node.child_value());
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

constexpr std::string_view kPictureEndings[] = {".jpg", ".jpeg", ".png", ".webp", ".bmp"};

std::string lower(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

// Without folders and without the ending of a picture or an annotation file.
std::string stem_of(std::string name) {
  std::replace(name.begin(), name.end(), '\\', '/');
  const fs::path file = fs::path(name).filename();
  const auto ending = lower(file.extension().string());
  const bool is_known = ending == ".xml" || std::find(std::begin(kPictureEndings), std::end(kPictureEndings),
                                                      ending) != std::end(kPictureEndings);
  return is_known ? file.stem().string() : file.string();
}

fs::path annotation_path(const fs::path& folder, const std::string& name) {
  return folder / "Annotations" / (name + ".xml");
}

// The image of a line of a list: a name, with or without folders and ending; lists of one class have a
// number, -1, 0 or 1, behind it.
std::string image_of_line(const std::string& line, const fs::path& folder) {
  auto name = stem_of(line);
  const auto blank = line.find_last_of(" \t");
  if (blank == std::string::npos) return name;
  const auto last = line.substr(blank + 1);
  if (last != "-1" && last != "0" && last != "1") return name;
  std::error_code ignored;
  const bool is_whole_name = fs::exists(annotation_path(folder, name), ignored);
  return is_whole_name ? name : stem_of(trimmed(line.substr(0, blank)));
}

std::vector<std::string> read_list(const fs::path& path, const fs::path& folder) {
  const auto text = read_text_file(path);
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  std::vector<std::string> names;
  std::unordered_map<std::string, std::size_t> lines;
  std::size_t number = 0;
  for (std::size_t begin = text.starts_with(kMark) ? kMark.size() : 0; begin < text.size(); ++number) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto line = trimmed(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    if (line.empty()) continue;
    SSD_VALIDATE(is_utf8(line) && line.find('\0') == std::string::npos,
                 "'{}' line {}: '{}' is not UTF-8 text; save the list as UTF-8", path.string(), number + 1,
                 printable(line));
    auto name = image_of_line(line, folder);
    SSD_VALIDATE(!name.empty(), "'{}' line {}: '{}' names no image", path.string(), number + 1, line);
    const auto [other, is_new] = lines.emplace(name, number + 1);
    SSD_VALIDATE(is_new, "'{}' line {}: '{}' is in line {} already", path.string(), number + 1, name,
                 other->second);
    names.push_back(std::move(name));
  }
  SSD_VALIDATE(!names.empty(), "'{}': no image in it", path.string());
  return names;
}

// The files of a folder, by their names and by those in lower case.
class PictureFolder {
 public:
  explicit PictureFolder(const fs::path& folder) : folder_(folder) {
    std::error_code error;  // a folder that is missing shows when its pictures are
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      auto name = entry->path().filename().string();
      files_.emplace(lower(name), name);
    }
  }

  // The file of an image, below the folder: what its XML calls it, else its name with the endings of pictures
  // in any case. name + ".jpg" where there is none.
  std::string find(const std::string& name, std::string called) const {
    std::replace(called.begin(), called.end(), '\\', '/');
    std::error_code ignored;
    if (!called.empty() && fs::is_regular_file(folder_ / called, ignored)) return called;
    std::vector<std::string> candidates{fs::path(called).filename().string()};
    for (const auto ending : kPictureEndings) candidates.push_back(name + std::string(ending));
    for (const auto& candidate : candidates) {
      const auto [first, last] = files_.equal_range(lower(candidate));
      for (auto file = first; file != last; ++file) {
        if (file->second == candidate) return candidate;
      }
      if (first != last) return first->second;
    }
    return name + ".jpg";
  }

 private:
  fs::path folder_;
  std::unordered_multimap<std::string, std::string> files_;
};

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
      : source_(source), problems_(problems), pictures_(voc_pictures(source.folder)) {
    for (const auto& name : source.classes) {
      const auto id = CategoryId(static_cast<std::int64_t>(set_.categories.size() + 1));
      set_.categories.push_back({id, name});
      categories_.emplace(name, id);
    }
  }

  AnnotationSet read() {
    const auto list = voc_list_path(source_.folder, source_.image_set);
    const auto names = read_list(list, source_.folder);
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
    const auto path = annotation_path(source_.folder, name);
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
    const auto called = trimmed(root.child("filename").child_value());
    set_.images.push_back({id, pictures_.find(name, called), *width, *height});
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
  PictureFolder pictures_;
  AnnotationSet set_;
  std::unordered_map<std::string, CategoryId> categories_;
  std::size_t no_size_count_ = 0;
  std::size_t difficult_count_ = 0;
};

}  // namespace

fs::path voc_pictures(const fs::path& folder) {
  return folder / "JPEGImages";
}

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
