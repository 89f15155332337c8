#include "preprocess/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "comm/agreement.hpp"
#include "comm/gather_texts.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/read_text_file.hpp"
#include "preprocess/check_image.hpp"
#include "preprocess/compare_source.hpp"
#include "preprocess/findings.hpp"
#include "preprocess/ordered_parallel.hpp"
#include "preprocess/pack_plan.hpp"
#include "preprocess/sources.hpp"
#include "preprocess/summary.hpp"
#include "record/file_names.hpp"
#include "record/listed_shard.hpp"
#include "record/manifest.hpp"
#include "report/progress.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWaitingPerThread = 4;  // looked at and not yet taken

// The splits that the folder holds, or the one that was asked for.
std::vector<Split> splits_of(const PreprocessOptions& options) {
  if (options.split) return {*options.split};
  std::vector<Split> splits;
  for (const auto split : {Split::train, Split::val})
    if (fs::exists(options.output / manifest_file_name(split))) splits.push_back(split);
  SSD_VALIDATE(!splits.empty(), "'{}': no set of shards (no '{}', no '{}')", options.output.string(),
               manifest_file_name(Split::train), manifest_file_name(Split::val));
  return splits;
}

using Problem = std::pair<std::string, std::string>;  // kind, text

class SetVerifier {
 public:
  SetVerifier(const PreprocessOptions& options, Split split, const std::optional<SplitSource>& source,
              const MpiComm& world)
      : options_(options), world_(world), name_(split_name(split)) {
    run_in_agreement(world_, [&] {
      const auto path = options_.output / manifest_file_name(split);
      const auto text = read_text_file(path);
      manifest_ = parse_manifest(text, path);
      SSD_VALIDATE(manifest_.split == split, "manifest '{}': is of the {} split", path.string(),
                   split_name(manifest_.split));
      more_ = nlohmann::json::parse(text);
      if (source) source_.emplace(read_source_set(*source, world_));
    });
    if (!source_) return;
    auto file_bytes = measure_files(*source_, options_.threads, world_);
    run_in_agreement(world_, [&] {
      plan_ = make_plan(*source_, std::move(file_bytes), PackOptions::parse(more_.at("options").dump()));
    });
  }

  bool run() {
    const auto ranks = static_cast<std::size_t>(world_.world_size()),
               rank = static_cast<std::size_t>(world_.rank());
    Progress progress(fmt::format("{}: verifying", name_), "shards", manifest_.shards.size() / ranks);
    run_in_agreement(world_, [&] {
      for (auto shard = rank; shard < manifest_.shards.size(); shard += ranks) {
        verify_shard(shard);
        progress.advance();
      }
    });
    progress.finish();
    const auto texts = gather_texts(
        world_, nlohmann::json(problems_).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    const auto orders = world_.gather(std::as_bytes(std::span(json_orders_)));
    bool is_right = true;
    if (world_.is_root()) is_right = report(texts, orders);
    return world_.reduce_all(std::int64_t{is_right}, ReduceOperation::min) != 0;
  }

 private:
  void verify_shard(std::size_t index) {
    const auto path = options_.output / manifest_.shards[index].file_name;
    try {
      const auto shard = read_listed_shard(options_.output, manifest_, index);
      json_orders_.insert(json_orders_.end(), shard.data.image_json_orders.begin(),
                          shard.data.image_json_orders.end());
      verify_pictures(shard, ShardBytes(path));
      if (!source_) return;
      if (!equal(categories_of(shard.data), source_->set.categories))
        problems_.emplace_back("shards whose categories are not the source's",
                               fmt::format("'{}'", path.string()));
      for (std::size_t i = 0; i < shard.data.image_ids.size(); ++i) {
        if (const auto difference = compare_with_source(shard.data, i, *source_); !difference.empty())
          problems_.emplace_back("records that are not as in the source",
                                 fmt::format("shard '{}', record {}: {}", path.string(), i, difference));
      }
    } catch (const Error& error) {
      problems_.emplace_back("shards that cannot be used", error.what());
    }
  }

  void verify_pictures(const ShardOnDisk& shard, const ShardBytes& bytes) {
    struct Worker {
      std::vector<std::byte> buffer;
    };
    const auto& data = shard.data;
    const auto look = [&](Worker& worker, std::size_t i) -> Problem {
      if ((data.image_flags[i] & kImageBad) != 0) return {};
      const auto name = data.file_names.at(i);
      if (!is_picture_whole(shard, i, bytes, worker.buffer))
        return {"damaged pictures (CRC-32)",
                fmt::format("{} (record {})",
                            describe_picture(bytes.path(), data.image_ids[i], name,
                                             shard.jpeg_data_offset + data.jpeg_offsets[i]),
                            i)};
      if (source_ && !is_source_of(data, i, source_->source.images / name))
        return {"pictures whose file is not the one that was packed",
                fmt::format("'{}' (image {})", (source_->source.images / name).string(), data.image_ids[i])};
      return {};
    };
    ordered_parallel<Worker, Problem>(data.image_ids.size(),
                                      {options_.threads, options_.threads * kWaitingPerThread}, look,
                                      [&](std::size_t, Problem&& problem) {
                                        if (!problem.second.empty()) problems_.push_back(std::move(problem));
                                      });
  }

  // Of all ranks, on the root. Whether all is right.
  bool report(const std::vector<std::string>& texts,
              const std::vector<std::vector<std::byte>>& orders) const {
    Findings findings;
    for (const auto& text : texts) {
      for (const auto& problem : nlohmann::json::parse(text).get<std::vector<Problem>>())
        findings.add(problem.first, problem.second);
    }
    std::size_t image_count = 0;
    for (const auto& bytes : orders) image_count += bytes.size() / sizeof(std::uint64_t);
    if (source_ && findings.count() == 0) compare_sets(orders, findings);
    for (const auto& line : findings.lines(name_)) log_line(line);
    if (findings.count() != 0) {
      log_error("{}: '{}': {} problems, listed above; copy the files again or run ssd_preprocess again",
                name_, options_.output.string(), findings.count());
      return false;
    }
    fmt::print("{}: ok: {} images in {} {}, digests and pictures are whole{}; set digest {}\n", name_,
               image_count, manifest_.shards.size(), manifest_.shards.size() == 1 ? "shard" : "shards",
               source_ ? fmt::format(", and as in '{}'", source_->source.annotations.string()) : "",
               manifest_.set_digest);
    std::fflush(stdout);
    return true;
  }

  // Whether the set is of this source at all, and whether it holds each image that it should.
  void compare_sets(const std::vector<std::vector<std::byte>>& orders, Findings& findings) const {
    if (plan_.identity != manifest_.set_identity) {
      findings.add("sets that were made from another source",
                   fmt::format("identity {}; '{}' and the files' names and sizes give {}",
                               manifest_.set_identity, source_->source.annotations.string(), plan_.identity));
      return;
    }
    const auto& images = source_->set.images;
    std::vector<int> times(images.size());
    for (const auto& bytes : orders) {
      std::vector<std::uint64_t> own(bytes.size() / sizeof(std::uint64_t));
      if (!own.empty()) std::memcpy(own.data(), bytes.data(), bytes.size());
      for (const auto order : own) ++times[order];  // compare_with_source has seen that it is a place
    }
    std::set<std::int64_t> left_out_ids;
    for (const auto& entry : more_.value("left_out", nlohmann::json::array()))
      left_out_ids.insert(entry.at("image_id").get<std::int64_t>());
    std::vector<int> expected(images.size());  // 0 for an image that --limit leaves out, too
    for (const auto place : plan_.images)
      expected[place] = left_out_ids.contains(images[place].id.value()) ? 0 : 1;
    for (std::size_t place = 0; place < images.size(); ++place) {
      if (times[place] != expected[place])
        findings.add("images that are not as often in the set as they should be",
                     fmt::format("image {}: {} times, not {}", images[place].id.value(), times[place],
                                 expected[place]));
    }
  }

  const PreprocessOptions& options_;
  const MpiComm& world_;
  std::string name_;
  Manifest manifest_;
  nlohmann::json more_;  // the manifest's other members
  std::optional<SourceSet> source_;
  PackPlan plan_;                           // of the source, with the options of the set
  std::vector<Problem> problems_;           // of this rank's shards
  std::vector<std::uint64_t> json_orders_;  // of this rank's records
};

void print_set(const PreprocessOptions& options, Split split) {
  const auto path = options.output / manifest_file_name(split);
  const auto text = read_text_file(path);
  const auto manifest = parse_manifest(text, path);
  const auto more = nlohmann::json::parse(text);
  std::optional<Summary> summary;
  std::uint64_t file_bytes = 0, smallest = manifest.shards.empty() ? 0 : manifest.shards[0].file_bytes,
                largest = 0;
  for (std::size_t index = 0; index < manifest.shards.size(); ++index) {
    const auto shard = read_listed_shard(options.output, manifest, index);
    if (!summary) summary.emplace(categories_of(shard.data));
    summary->add(shard.data);
    const auto bytes = manifest.shards[index].file_bytes;
    file_bytes += bytes;
    smallest = std::min(smallest, bytes);
    largest = std::max(largest, bytes);
  }
  SSD_VALIDATE(summary, "manifest '{}': no shards", path.string());
  const auto counts = more.value("counts", nlohmann::json::object());
  const SourceCounts source{counts.value("missing_area", std::size_t{0}),
                            counts.value("missing_iscrowd", std::size_t{0}),
                            more.value("left_out", nlohmann::json::array()).size()};
  fmt::print("{}: {} images, {} boxes in '{}'\n", split_name(split), summary->image_count(),
             summary->box_count(), options.output.string());
  fmt::print("  set identity {}, digest {}\n", manifest.set_identity, manifest.set_digest);
  fmt::print("  options {}\n", more.value("options", nlohmann::json::object()).dump());
  fmt::print("  {} shards of {} to {}, {} in all, {} of JPEG data\n", manifest.shards.size(),
             describe_bytes(smallest), describe_bytes(largest), describe_bytes(file_bytes),
             describe_bytes(summary->jpeg_bytes()));
  for (const auto& line : summary->lines(source)) fmt::print("{}\n", line);
}

}  // namespace

void verify_sets(const PreprocessOptions& options, const MpiComm& world) {
  std::vector<Split> splits;
  std::vector<SplitSource> sources;
  run_in_agreement(world, [&] {
    splits = splits_of(options);
    if (options.has_source()) sources = find_sources(options);
  });
  bool is_right = true;
  for (const auto split : splits) {
    const auto source =
        std::find_if(sources.begin(), sources.end(), [&](const auto& s) { return s.split == split; });
    try {
      is_right &=
          SetVerifier(options, split, source == sources.end() ? std::optional<SplitSource>() : *source, world)
              .run();
    } catch (const AgreedFailure&) {
      is_right = false;
    }
  }
  if (!is_right) throw AgreedFailure{1};
}

void print_info(const PreprocessOptions& options) {
  for (const auto split : splits_of(options)) print_set(options, split);
  std::fflush(stdout);
}

}  // namespace ssd
