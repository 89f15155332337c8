#include "reader_checks.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <unordered_set>
#include <vector>

#include "coco/annotations.hpp"
#include "coco/detections.hpp"
#include "core/error.hpp"

namespace ssd::test {
namespace {

// A file that is in memory only.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& text) : descriptor_(::memfd_create("ssd_reader_checks", 0)) {
    if (descriptor_ < 0 ||
        ::write(descriptor_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      throw std::logic_error("no file in memory");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

struct Outcome {
  std::vector<Detection> detections;
  std::string error;  // empty: none
};

Outcome read(const std::string& path, const ReadOptions& options) {
  try {
    return {read_detections(path, options), {}};
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

bool are_same(const Detection& a, const Detection& b) {
  return a.image_id == b.image_id && a.category_id == b.category_id &&
         std::memcmp(a.bbox_xywh.data(), b.bbox_xywh.data(), sizeof(a.bbox_xywh)) == 0 &&
         std::memcmp(&a.score, &b.score, sizeof(a.score)) == 0;
}

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

void expect_same(const Outcome& a, const Outcome& b, const std::string& which) {
  expect(a.error == b.error, fmt::format("{}: '{}', but '{}'", which, a.error, b.error));
  expect(a.detections.size() == b.detections.size(),
         fmt::format("{}: {} detections, but {}", which, a.detections.size(), b.detections.size()));
  for (std::size_t i = 0; i < a.detections.size(); ++i)
    expect(are_same(a.detections[i], b.detections[i]), fmt::format("{}: detection [{}] differs", which, i));
}

// Not an integer, or one that the reader does not promise to take: nothing.
std::optional<std::int64_t> integer_of(const nlohmann::json& value) {
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const auto real = value.get<double>();
  if (real != std::trunc(real) || std::abs(real) > 0x1p53) return std::nullopt;
  return static_cast<std::int64_t>(real);
}

// As the other library reads them; nothing where a record is not a detection.
std::optional<std::vector<Detection>> detections_of(const nlohmann::json& json) {
  std::vector<Detection> detections;
  if (!json.is_array()) return std::nullopt;
  for (const auto& record : json) {
    if (!record.is_object()) return std::nullopt;
    for (const auto* key : {"image_id", "category_id", "bbox", "score"})
      if (!record.contains(key)) return std::nullopt;
    const auto image = integer_of(record["image_id"]), category = integer_of(record["category_id"]);
    const auto& box = record["bbox"];
    if (!image || !category || !record["score"].is_number() || !box.is_array() || box.size() != 4)
      return std::nullopt;
    Detection detection{ImageId(*image), CategoryId(*category), {}, record["score"].get<double>()};
    for (std::size_t i = 0; i < 4; ++i) {
      if (!box[i].is_number()) return std::nullopt;
      detection.bbox_xywh[i] = box[i].get<double>();
    }
    detections.push_back(detection);
  }
  return detections;
}

// -0 without a point: a double -0 here, the integer 0 there. No number in the comparison tells them apart.
void drop_signs_of_zero(std::vector<Detection>& detections) {
  for (auto& detection : detections) {
    for (auto& value : detection.bbox_xywh) value += 0.0;
    detection.score += 0.0;
  }
}

// Twice the same key in one record: what was read first may be wrong, and is not looked at by the other
// library.
bool may_have_repeated_keys(const std::string& text, std::size_t detections) {
  std::size_t keys = 0;
  for (auto at = text.find('"'); at != std::string::npos; at = text.find('"', at + 1)) ++keys;
  return keys != 8 * detections;
}

}  // namespace

void check_results_text(const std::string& text) {
  const MemoryFile file(text);
  auto whole = read(file.path(), {});
  expect_same(whole, read(file.path(), {.threads = 1, .block_bytes = 50, .on_progress = {}}), "small blocks");
  expect_same(whole, read(file.path(), {.threads = 3, .block_bytes = 70, .on_progress = {}}), "threads");
  if (text.find('\0') != std::string::npos) return;  // to the other library the end of the text
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return;
  auto expected = detections_of(json);
  if (!expected) return expect(!whole.error.empty(), "what is no array of detections was read as one");
  if (whole.error.empty() || !may_have_repeated_keys(text, expected->size())) {
    drop_signs_of_zero(whole.detections);
    drop_signs_of_zero(*expected);
    expect_same(whole, {*expected, {}}, "another JSON library");
  }
}

void check_annotations_text(const std::string& text) {
  const MemoryFile file(text);
  AnnotationSet set;
  try {
    std::vector<AnnotationProblem> problems;
    set = read_annotations(file.path(), problems);
  } catch (const Error&) {
    return;
  }
  std::unordered_set<ImageId> images;
  std::unordered_set<CategoryId> categories;
  for (const auto& image : set.images) expect(images.insert(image.id).second, "an image id is there twice");
  for (const auto& category : set.categories)
    expect(categories.insert(category.id).second, "a category id is there twice");
  for (const auto& annotation : set.annotations) {
    expect(images.contains(annotation.image_id), "an annotation has no image");
    expect(categories.contains(annotation.category_id), "an annotation has no category");
    for (const double value : annotation.bbox_xywh) expect(std::isfinite(value), "a box is not finite");
    expect(annotation.bbox_xywh[2] >= 0 && annotation.bbox_xywh[3] >= 0, "a box has a negative size");
  }
}

}  // namespace ssd::test
