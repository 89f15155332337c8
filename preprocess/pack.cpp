#include "preprocess/pack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "comm/agreement.hpp"
#include "comm/gather_texts.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "preprocess/findings.hpp"
#include "preprocess/other_split.hpp"
#include "preprocess/pack_shard.hpp"
#include "preprocess/summary.hpp"
#include "record/file_names.hpp"
#include "record/manifest.hpp"
#include "record/set_folder.hpp"
#include "record/shard_file.hpp"
#include "report/progress.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::vector<ImageProblem>& problems) {
  auto json = nlohmann::json::array();
  for (const auto& problem : problems)
    json.push_back({problem.place, static_cast<int>(problem.kind), problem.text});
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Of all ranks, in the plan's order.
std::vector<ImageProblem> parse_problems(const std::vector<std::string>& texts) {
  std::vector<ImageProblem> problems;
  for (const auto& text : texts) {
    for (const auto& entry : nlohmann::json::parse(text))
      problems.push_back({entry.at(0).get<std::size_t>(),
                          static_cast<ImageProblemKind>(entry.at(1).get<int>()),
                          entry.at(2).get<std::string>()});
  }
  std::sort(problems.begin(), problems.end(), [](const auto& a, const auto& b) { return a.place < b.place; });
  return problems;
}

class SplitPacker {
 public:
  SplitPacker(const SplitSource& source, const PreprocessOptions& options, const MpiComm& world)
      : options_(options), world_(world), name_(split_name(source.split)) {
    run_in_agreement(world_, [&] {
      read_time_ = time_of(source);
      source_ = read_source_set(source, world_);
    });
  }

  void run() {
    make_the_plan();
    if (is_done_already()) return;
    pack();
    auto problems = parse_problems(gather_texts(world_, text_of(problems_)));
    run_in_agreement(world_, [&] {
      if (!world_.is_root()) return;
      report(problems);
      publish(problems);
    });
  }

 private:
  static fs::file_time_type time_of(const SplitSource& source) {
    std::error_code ignored;  // a file that is missing is an error of the reader
    return fs::last_write_time(source.annotations, ignored);
  }

  void make_the_plan() {
    auto file_bytes = measure_files(source_, options_.threads, world_);
    run_in_agreement(world_, [&] {
      validate_right_folder(source_, file_bytes);
      plan_ = make_plan(source_, std::move(file_bytes), options_.pack);
    });
    const auto mark = static_cast<std::int64_t>(std::stoull(plan_.identity.substr(0, 15), nullptr, 16));
    const bool is_same =
        world_.reduce_all(mark, ReduceOperation::min) == world_.reduce_all(mark, ReduceOperation::max);
    run_in_agreement(world_, [&] {
      SSD_VALIDATE(is_same,
                   "{}: the ranks see different annotations in '{}'; give a file that is the same for all",
                   name_, source_.source.annotations.string());
    });
  }

  // Opens the folder, on the root.
  bool is_done_already() {
    bool is_done = false;
    run_in_agreement(world_, [&] {
      if (!world_.is_root()) return;
      folder_.emplace(options_.output, source_.source.split);
      compare_classes();
      is_done = !options_.force && holds_this_set();
      if (const auto count = folder_->clean(is_done || options_.force ? 0 : plan_.shard_count()))
        log_info("{}: removed {} files of a run that did not finish", name_, count);
    });
    return world_.reduce_all(std::int64_t{is_done}, ReduceOperation::max) != 0;
  }

  // --force may be about to replace the other split as well.
  void compare_classes() const {
    try {
      compare_with_other_split(options_.output, source_.source.split, source_.set.categories);
    } catch (const Error& error) {
      if (!options_.force) throw;
      log_warning("{}", error.what());
    }
  }

  bool holds_this_set() const {
    const auto existing = folder_->existing(plan_.identity);
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

  fs::path waiting_path(std::uint32_t shard) const {
    return options_.output / waiting_file_name({source_.source.split, shard, plan_.shard_count()});
  }

  // A shard for each rank, and again: after each round all know whether one failed.
  void pack() {
    const auto ranks = static_cast<std::uint32_t>(world_.world_size());
    const auto rank = static_cast<std::uint32_t>(world_.rank());
    Progress progress(ranks == 1 ? fmt::format("{}: packing", name_) : fmt::format("{}: rank 0 packs", name_),
                      "images", plan_.images.size() / ranks);
    const ShardWork work{source_, plan_, options_.threads, [&] { progress.advance(); }};
    bool has_problems = !source_.problems.empty();
    for (std::uint32_t first = 0; first < plan_.shard_count(); first += ranks) {
      run_in_agreement(world_, [&] {
        if (first + rank < plan_.shard_count()) pack_one(work, first + rank, has_problems);
      });
      has_problems =
          world_.reduce_all(std::int64_t{has_problems || !problems_.empty()}, ReduceOperation::max) != 0;
    }
    progress.finish();
    if (kept_shards_ != 0)
      log_info("{}: {} shards of a run that did not finish were whole", name_, kept_shards_);
  }

  void pack_one(const ShardWork& work, std::uint32_t shard, bool has_problems) {
    const auto path = waiting_path(shard);
    // After a problem without --skip-bad the rest is checked only.
    const auto write = has_problems && !options_.pack.skip_bad ? WriteShard::no : WriteShard::yes;
    try {
      if (write == WriteShard::yes && is_packed_already(work, shard, path, problems_)) {
        ++kept_shards_;
        return;
      }
      for (auto& problem : pack_shard(work, shard, write, path)) problems_.push_back(std::move(problem));
    } catch (const std::bad_alloc&) {
      throw Error("out of memory; a smaller --shard-size or fewer --threads need less");
    }
  }

  void report(const std::vector<ImageProblem>& problems) {
    Findings findings;
    for (const auto& problem : source_.problems) findings.add(describe(problem.kind), problem.text);
    for (const auto& problem : problems) findings.add(describe(problem.kind), problem.text);
    for (const auto& line : findings.lines(name_)) log_line(line);
    if (options_.pack.skip_bad || findings.count() == 0) return;
    folder_->clean(0);
    throw Error(
        fmt::format("{}: {} problems in the input, listed above; nothing was written; mend them, or leave "
                    "out what is bad with --skip-bad",
                    name_, findings.count()));
  }

  nlohmann::ordered_json left_out(const std::vector<ImageProblem>& problems) const {
    auto json = nlohmann::ordered_json::array();
    if (source_.source.split != Split::train) return json;
    for (const auto& problem : problems) {
      const auto& image = source_.set.images[plan_.images[problem.place]];
      json.push_back({{"image_id", image.id.value()},
                      {"file_name", image.file_name},
                      {"reason", describe(problem.kind)}});
    }
    return json;
  }

  void publish(const std::vector<ImageProblem>& problems) {
    Summary summary(source_.set.categories);
    Manifest manifest{source_.source.split, plan_.identity, {}, {}};
    for (std::uint32_t shard = 0; shard < plan_.shard_count(); ++shard) {
      const auto path = waiting_path(shard);
      const auto written = read_shard(path);
      summary.add(written.data);
      manifest.shards.push_back({shard_file_name({source_.source.split, shard, plan_.shard_count()}),
                                 fs::file_size(path), written.data.image_ids.size(),
                                 written.data.annotation_ids.size(), written.digest.hex()});
    }
    if (summary.image_count() == 0) folder_->clean(0);
    SSD_VALIDATE(summary.image_count() != 0, "{}: no image is left to pack", name_);
    SSD_VALIDATE(time_of(source_.source) == read_time_,
                 "'{}' changed while the set was packed; nothing was published; run ssd_preprocess again",
                 source_.source.annotations.string());
    const auto images_left_out = left_out(problems);
    const SourceCounts counts{source_.set.missing_area_count, source_.set.missing_iscrowd_count,
                              images_left_out.size()};
    nlohmann::ordered_json more;
    auto& categories = more["categories"] = nlohmann::ordered_json::array();
    for (const auto& category : source_.set.categories)
      categories.push_back({{"id", category.id.value()}, {"name", category.name}});
    more["options"] = nlohmann::ordered_json::parse(plan_.options.text());
    more["left_out"] = images_left_out;
    auto& annotations = more["left_out_annotations"] = nlohmann::ordered_json::array();
    for (const auto& problem : source_.problems) annotations.push_back(problem.text);
    more["counts"] = summary.counts(counts);
    manifest.set_digest = set_digest_of(manifest).hex();
    folder_->publish(manifest.shards, manifest_text(manifest, more));
    print(summary, counts);
  }

  void print(const Summary& summary, const SourceCounts& counts) const {
    fmt::print("{}: {} images, {} boxes, {} of JPEG data in {} {} in '{}'\n", name_, summary.image_count(),
               summary.box_count(), describe_bytes(summary.jpeg_bytes()), plan_.shard_count(),
               plan_.shard_count() == 1 ? "shard" : "shards", options_.output.string());
    for (const auto& line : summary.lines(counts)) fmt::print("{}\n", line);
    std::fflush(stdout);
    for (const auto& warning : summary.warnings()) log_warning("{}: {}", name_, warning);
  }

  const PreprocessOptions& options_;
  const MpiComm& world_;
  std::string name_;
  fs::file_time_type read_time_;
  SourceSet source_;
  PackPlan plan_;
  std::optional<SetFolder> folder_;     // on the root
  std::vector<ImageProblem> problems_;  // of this rank's shards
  std::size_t kept_shards_ = 0;
};

}  // namespace

void pack_split(const SplitSource& source, const PreprocessOptions& options, const MpiComm& world) {
  SplitPacker(source, options, world).run();
}

}  // namespace ssd
