#include "preprocess/source_set.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "core/error.hpp"
#include "core/log.hpp"
#include "preprocess/ordered_parallel.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWaitingSizes = 1024;

void group_annotations(SourceSet& source) {
  const auto& set = source.set;
  std::unordered_map<ImageId, std::size_t> places;
  for (std::size_t i = 0; i < set.images.size(); ++i) places.emplace(set.images[i].id, i);
  source.annotations_of.resize(set.images.size());
  for (std::size_t i = 0; i < set.annotations.size(); ++i)
    source.annotations_of[places.at(set.annotations[i].image_id)].push_back(i);
}

}  // namespace

SourceSet read_source_set(const SplitSource& source) {
  log_info("{}: reading '{}'", split_name(source.split), source.annotations.string());
  SourceSet result{source, {}, {}, {}};
  result.set = source.voc ? read_voc(*source.voc, result.problems)
                          : read_annotations(source.annotations, result.problems);
  SSD_VALIDATE(!result.set.images.empty(), "'{}': no image in it", source.annotations.string());
  SSD_VALIDATE(!result.set.categories.empty(), "'{}': no category in it", source.annotations.string());
  group_annotations(result);
  return result;
}

std::vector<std::uint64_t> measure_files(const SourceSet& source, unsigned threads, const MpiComm& world) {
  const auto& images = source.set.images;
  const auto ranks = static_cast<std::size_t>(world.world_size()),
             rank = static_cast<std::size_t>(world.rank());
  const auto first = images.size() * rank / ranks, last = images.size() * (rank + 1) / ranks;
  struct Nothing {};
  const auto size_of = [&](Nothing&, std::size_t i) {
    std::error_code error;
    const auto size = fs::file_size(source.source.images / images[first + i].file_name, error);
    return error ? kNoFile : std::uint64_t{size};
  };
  std::vector<std::uint64_t> own;
  ordered_parallel<Nothing, std::uint64_t>(last - first, {threads, kWaitingSizes}, size_of,
                                           [&](std::size_t, std::uint64_t size) { own.push_back(size); });
  std::vector<std::uint64_t> all;
  for (const auto& bytes : world.gather(std::as_bytes(std::span(own)))) {
    const auto filled = all.size();
    all.resize(filled + bytes.size() / sizeof(std::uint64_t));
    if (!bytes.empty()) std::memcpy(all.data() + filled, bytes.data(), bytes.size());
  }
  all.resize(images.size());
  world.broadcast_in_place(std::as_writable_bytes(std::span(all)));
  return all;
}

void validate_right_folder(const SourceSet& source, const std::vector<std::uint64_t>& file_bytes) {
  if (std::any_of(file_bytes.begin(), file_bytes.end(), [](auto bytes) { return bytes != kNoFile; })) return;
  const auto& images = source.source.images;
  const auto& name = source.set.images.front().file_name;
  const auto nearby = find_images_nearby(images, name);
  throw Error(fmt::format("{}: 0 of {} images found in '{}'{}", split_name(source.source.split),
                          file_bytes.size(), images.string(),
                          nearby.empty() ? fmt::format(" (looked for '{}')", name)
                                         : fmt::format("; did you mean '{}'?", nearby.string())));
}

}  // namespace ssd
