#include "preprocess/pack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "core/error.hpp"
#include "core/log.hpp"
#include "preprocess/check_image.hpp"
#include "preprocess/findings.hpp"
#include "preprocess/ordered_parallel.hpp"
#include "preprocess/summary.hpp"
#include "record/file_names.hpp"
#include "record/manifest.hpp"
#include "record/set_folder.hpp"
#include "report/progress.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWaitingPerThread = 4;  // pictures in memory, checked and not yet taken

// Whether training can use the box: it has a size, and some of it lies inside the image.
bool is_trainable(const BoxXywh& box, const ImageEntry& image) {
  const auto [x, y, width, height] = box;
  return width > 0 && height > 0 && x < image.width && y < image.height && x + width > 0 && y + height > 0;
}

// First image of each shard: as many as fit by the sizes of their files, at least one.
std::vector<std::size_t> plan_shards(const std::vector<std::uint64_t>& file_bytes,
                                     std::uint64_t shard_bytes) {
  std::vector<std::size_t> first_images;
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i < file_bytes.size(); ++i) {
    if (i == 0 || filled + file_bytes[i] > shard_bytes) {
      first_images.push_back(i);
      filled = 0;
    }
    filled += file_bytes[i];
  }
  return first_images;
}

std::string describe_bytes(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", value / 1e3);
  return bytes < 1'000'000'000 ? fmt::format("{:.1f} MB", value / 1e6)
                               : fmt::format("{:.2f} GB", value / 1e9);
}

class SplitPacker {
 public:
  SplitPacker(const SplitSource& source, const PreprocessOptions& options)
      : source_(source),
        options_(options),
        name_(split_name(source.split)),
        set_(read_set()),
        summary_(set_),
        folder_(options.output, source.split) {}

  void run() {
    group_annotations();
    measure_files();
    const auto plan = plan_shards(file_bytes_, options_.shard_bytes);
    SSD_VALIDATE(plan.size() <= kMostShards, "{}: {} shards of {}; at most {}: give a larger --shard-size",
                 name_, plan.size(), describe_bytes(options_.shard_bytes), kMostShards);
    identity_ = make_identity();
    if (is_done_already()) return;
    if (const auto count = folder_.clean(0))
      log_info("{}: removed {} files of a run that did not finish", name_, count);
    pack(plan);
    report_problems();
    publish();
    print_summary();
  }

 private:
  AnnotationSet read_set() {
    log_info("{}: reading '{}'", name_, source_.annotations.string());
    std::vector<AnnotationProblem> problems;
    auto set =
        source_.voc ? read_voc(*source_.voc, problems) : read_annotations(source_.annotations, problems);
    for (const auto& problem : problems) {
      findings_.add(describe(problem.kind), problem.text);
      left_out_annotations_.push_back(problem.text);
    }
    SSD_VALIDATE(!set.images.empty(), "'{}': no image in it", source_.annotations.string());
    SSD_VALIDATE(!set.categories.empty(), "'{}': no category in it", source_.annotations.string());
    return set;
  }

  void group_annotations() {
    std::unordered_map<ImageId, std::size_t> places;
    for (std::size_t i = 0; i < set_.images.size(); ++i) places.emplace(set_.images[i].id, i);
    annotations_of_.resize(set_.images.size());
    for (std::size_t i = 0; i < set_.annotations.size(); ++i)
      annotations_of_[places.at(set_.annotations[i].image_id)].push_back(i);
  }

  // Sizes of all files, 0 where one is missing; and whether this is the right folder at all.
  void measure_files() {
    struct Nothing {};
    const auto size_of = [&](Nothing&, std::size_t i) {
      std::error_code error;
      const auto size = fs::file_size(source_.images / set_.images[i].file_name, error);
      return error ? std::optional<std::uint64_t>() : std::uint64_t{size};
    };
    std::size_t found = 0;
    ordered_parallel<Nothing, std::optional<std::uint64_t>>(
        set_.images.size(), {options_.threads, 1024}, size_of,
        [&](std::size_t, std::optional<std::uint64_t>&& size) {
          file_bytes_.push_back(size.value_or(0));
          found += size.has_value();
        });
    if (found != 0) return;
    const auto nearby = find_images_nearby(source_.images, set_.images.front().file_name);
    throw Error(fmt::format("{}: 0 of {} images found in '{}'{}", name_, set_.images.size(),
                            source_.images.string(),
                            nearby.empty() ? fmt::format(" (looked for '{}')", set_.images.front().file_name)
                                           : fmt::format("; did you mean '{}'?", nearby.string())));
  }

  std::string options_text() const {
    nlohmann::ordered_json json;
    json["shard_bytes"] = options_.shard_bytes;
    json["skip_bad"] = options_.skip_bad;
    return json.dump();
  }

  // FORMAT.md, "Digests": what the set is made from.
  std::string make_identity() const {
    Digester digester;
    const auto add_text = [&](std::string_view text) {
      const std::uint64_t size = text.size();
      digester.update(std::as_bytes(std::span(&size, 1)));
      digester.update(std::as_bytes(std::span(text)));
    };
    const auto add = [&](const auto& value) { digester.update(std::as_bytes(std::span(&value, 1))); };
    add(kShardFormatVersion);
    add_text(name_);
    add_text(options_text());
    for (const auto& category : set_.categories) {
      add(category.id.value());
      add_text(category.name);
    }
    for (std::size_t i = 0; i < set_.images.size(); ++i) {
      const auto& image = set_.images[i];
      add(image.id.value());
      add_text(image.file_name);
      add(image.width);
      add(image.height);
      add(file_bytes_[i]);
    }
    for (const auto& annotation : set_.annotations) {
      add(annotation.id);
      add(annotation.image_id.value());
      add(annotation.category_id.value());
      add(annotation.bbox_xywh);
      add(annotation.area);
      add(std::int32_t{annotation.is_crowd});
    }
    return digester.digest().hex();
  }

  bool is_done_already() const {
    if (options_.force) return false;
    const auto existing = folder_.existing(identity_);
    SSD_VALIDATE(
        existing != ExistingSet::other,
        "{}: '{}' holds other {} shards, made from another input or with other options, or damaged; --force "
        "replaces them",
        name_, options_.output.string(), name_);
    if (existing == ExistingSet::none) return false;
    log_info(
        "{}: '{}' holds these shards already (same annotations, file names, sizes and options); --force "
        "packs "
        "them again",
        name_, options_.output.string());
    return true;
  }

  void pack(const std::vector<std::size_t>& first_images) {
    Progress progress(fmt::format("{}: packing", name_), "images", set_.images.size());
    const auto shard_count = static_cast<std::uint32_t>(first_images.size());
    std::unique_ptr<ShardWriter> writer;
    std::uint32_t shard = 0;
    const auto finish_shard = [&] {
      if (!writer) return;
      // After a problem without --skip-bad the rest is checked only.
      if (is_packing()) shards_.push_back(writer->close(folder_.temporary_path(shard, shard_count)));
      writer.reset();
      ++shard;
    };
    const auto check = [&](ImageChecker& checker, std::size_t i) {
      return checker.check(set_.images[i], source_.images);
    };
    const auto take = [&](std::size_t i, CheckedImage&& image) {
      if (std::binary_search(first_images.begin(), first_images.end(), i)) {
        finish_shard();
        const auto end = shard + 1 < shard_count ? first_images[shard + 1] : file_bytes_.size();
        const auto bytes = std::reduce(file_bytes_.begin() + static_cast<std::ptrdiff_t>(i),
                                       file_bytes_.begin() + static_cast<std::ptrdiff_t>(end));
        writer = std::make_unique<ShardWriter>(
            ShardHeader{source_.split, shard, shard_count, identity_, options_text()}, set_.categories,
            bytes);
      }
      take_image(i, std::move(image), *writer);
      progress.advance();
    };
    ordered_parallel<ImageChecker, CheckedImage>(
        set_.images.size(), {options_.threads, options_.threads * kWaitingPerThread}, check, take);
    finish_shard();
    progress.finish();
  }

  bool is_packing() const { return options_.skip_bad || findings_.count() == 0; }

  void take_image(std::size_t i, CheckedImage&& image, ShardWriter& writer) {
    if (image.problem != ImageProblemKind::none) {
      findings_.add(describe(image.problem), image.problem_text);
      // A val image stays, without a picture: every image of the set is evaluated.
      if (source_.split == Split::train) {
        summary_.add_left_out_image(set_.images[i].id, set_.images[i].file_name, describe(image.problem));
        return;
      }
    }
    if (!is_packing()) return;
    auto& record = image.record;
    record.json_order = i;
    for (const auto place : annotations_of_[i]) {
      const auto& annotation = set_.annotations[place];
      record.annotations.push_back({annotation, place, is_trainable(annotation.bbox_xywh, record.image)});
    }
    writer.add(record, image.jpeg);
    summary_.add(record, image.jpeg.size());
  }

  void report_problems() {
    for (const auto& line : findings_.lines(name_)) log_line(line);
    if (!is_packing()) folder_.clean(0);
    SSD_VALIDATE(is_packing(),
                 "{}: {} problems in the input, listed above; nothing was written; mend them, or leave out "
                 "what is bad "
                 "with --skip-bad",
                 name_, findings_.count());
    SSD_VALIDATE(summary_.image_count() != 0, "{}: no image is left to pack", name_);
  }

  void publish() {
    nlohmann::ordered_json more;
    auto& categories = more["categories"] = nlohmann::ordered_json::array();
    for (const auto& category : set_.categories)
      categories.push_back({{"id", category.id.value()}, {"name", category.name}});
    more["options"] = nlohmann::ordered_json::parse(options_text());
    more["left_out"] = summary_.left_out();
    more["left_out_annotations"] = left_out_annotations_;
    more["counts"] = summary_.counts();
    Manifest manifest{source_.split, identity_, {}, shards_};
    manifest.set_digest = set_digest_of(manifest).hex();
    folder_.publish(shards_, manifest_text(manifest, more));
  }

  void print_summary() const {
    std::uint64_t annotation_count = 0;
    for (const auto& shard : shards_) annotation_count += shard.annotation_count;
    fmt::print("{}: {} images, {} boxes, {} of JPEG data in {} {} in '{}'\n", name_, summary_.image_count(),
               annotation_count, describe_bytes(summary_.jpeg_bytes()), shards_.size(),
               shards_.size() == 1 ? "shard" : "shards", options_.output.string());
    for (const auto& line : summary_.lines()) fmt::print("{}\n", line);
    std::fflush(stdout);
    for (const auto& warning : summary_.warnings()) log_warning("{}: {}", name_, warning);
  }

  const SplitSource& source_;
  const PreprocessOptions& options_;
  std::string name_;
  Findings findings_;
  std::vector<std::string> left_out_annotations_;
  AnnotationSet set_;
  Summary summary_;
  SetFolder folder_;
  std::vector<std::vector<std::size_t>> annotations_of_;  // of each image: places in the set's annotations
  std::vector<std::uint64_t> file_bytes_;                 // of each image's file
  std::string identity_;
  std::vector<ShardSummary> shards_;
};

}  // namespace

void pack_split(const SplitSource& source, const PreprocessOptions& options) {
  SplitPacker(source, options).run();
}

}  // namespace ssd
