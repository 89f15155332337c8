#include "preprocess/pack_shard.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "core/error.hpp"
#include "core/log.hpp"
#include "preprocess/ordered_parallel.hpp"
#include "record/listed_shard.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWaitingPerThread = 4;  // pictures in memory, checked and not yet taken

// Whether training can use the box: it has a size, and some of it lies inside the image.
bool is_trainable(const BoxXywh& box, const ImageEntry& image) {
  const auto [x, y, width, height] = box;
  return width > 0 && height > 0 && x < image.width && y < image.height && x + width > 0 && y + height > 0;
}

// The images of one shard of the plan.
class ShardImages {
 public:
  ShardImages(const ShardWork& work, std::uint32_t shard)
      : work_(work),
        first_(work.plan.first_images[shard]),
        count_(work.plan.first_images[shard + 1] - first_) {}

  std::size_t count() const { return count_; }
  std::size_t place(std::size_t i) const { return first_ + i; }  // in the plan's images
  std::size_t json_order(std::size_t i) const { return work_.plan.images[first_ + i]; }
  const ImageEntry& entry(std::size_t i) const { return work_.source.set.images[json_order(i)]; }

  std::uint64_t file_bytes() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const auto bytes = work_.plan.file_bytes[json_order(i)];
      if (bytes != kNoFile) sum += bytes;
    }
    return sum;
  }

  CheckedImage check(ImageChecker& checker, std::size_t i) const {
    auto image =
        checker.check(entry(i), work_.source.source.images,
                      work_.plan.options.keep_original_jpeg ? StoredJpeg::original : StoredJpeg::anew);
    const auto expected = work_.plan.file_bytes[json_order(i)];
    const auto found = image.problem == ImageProblemKind::missing ? kNoFile : image.record.source_bytes;
    SSD_VALIDATE(found == expected || image.problem == ImageProblemKind::unreadable,
                 "'{}' (image {}): changed while the set was packed; run ssd_preprocess again when nothing "
                 "writes there",
                 (work_.source.source.images / entry(i).file_name).string(), entry(i).id.value());
    return image;
  }

 private:
  const ShardWork& work_;
  std::size_t first_;
  std::size_t count_;
};

ShardHeader header_of(const ShardWork& work, std::uint32_t shard) {
  return {work.source.source.split, shard, work.plan.shard_count(), work.plan.identity,
          work.plan.options.text()};
}

OrderedParallelOptions parallel_options(const ShardWork& work) {
  return {work.threads, work.threads * kWaitingPerThread};
}

// A train image that cannot be used is left out; a val image stays, without a picture: every image of the set
// is evaluated.
bool is_left_out(const ShardWork& work, ImageProblemKind problem) {
  return problem != ImageProblemKind::none && work.source.source.split == Split::train;
}

struct SourceState {
  bool is_as_packed = false;
  CheckedImage image;  // where the shard does not have its picture
};

}  // namespace

std::vector<ImageProblem> pack_shard(const ShardWork& work, std::uint32_t shard, WriteShard write,
                                     const fs::path& path) {
  const ShardImages images(work, shard);
  const auto& set = work.source.set;
  const auto skips_bad = work.plan.options.skip_bad;
  ShardWriter writer(header_of(work, shard), set.categories,
                     write == WriteShard::yes ? images.file_bytes() : 0);
  std::vector<ImageProblem> problems;
  const auto is_writing = [&] { return write == WriteShard::yes && (skips_bad || problems.empty()); };
  const auto take = [&](std::size_t i, CheckedImage&& image) {
    work.advance();
    if (image.problem != ImageProblemKind::none)
      problems.push_back({images.place(i), image.problem, std::move(image.problem_text)});
    if (!is_writing() || is_left_out(work, image.problem)) return;
    auto& record = image.record;
    record.json_order = images.json_order(i);
    for (const auto place : work.source.annotations_of[record.json_order]) {
      const auto& annotation = set.annotations[place];
      record.annotations.push_back({annotation, place, is_trainable(annotation.bbox_xywh, record.image)});
    }
    writer.add(record, image.jpeg);
  };
  ordered_parallel<ImageChecker, CheckedImage>(
      images.count(), parallel_options(work),
      [&](ImageChecker& checker, std::size_t i) { return images.check(checker, i); }, take);
  if (is_writing()) writer.close(path);
  return problems;
}

bool is_packed_already(const ShardWork& work, std::uint32_t shard, const fs::path& path,
                       std::vector<ImageProblem>& problems) {
  if (!fs::exists(path)) return false;
  const ShardImages images(work, shard);
  ShardOnDisk found;
  try {
    found = read_shard(path);
  } catch (const Error& error) {
    log_warning("{}; it is packed again", error.what());
    return false;
  }
  if (found.header != header_of(work, shard)) return false;

  std::unordered_map<std::uint64_t, std::size_t> rows;
  for (std::size_t row = 0; row < found.data.image_json_orders.size(); ++row)
    rows.emplace(found.data.image_json_orders[row], row);
  const ShardBytes bytes(path);
  struct Worker {
    ImageChecker checker;
    std::vector<std::byte> buffer;
  };
  const auto look = [&](Worker& worker, std::size_t i) {
    SourceState state;
    const auto row = rows.find(images.json_order(i));
    if (row == rows.end() || (found.data.image_flags[row->second] & kImageBad) != 0) {
      state.image = images.check(worker.checker, i);
      state.is_as_packed = state.image.problem != ImageProblemKind::none;
    } else {
      state.is_as_packed =
          is_picture_whole(found, row->second, bytes, worker.buffer) &&
          is_source_of(found.data, row->second, work.source.source.images / images.entry(i).file_name);
    }
    return state;
  };
  bool is_right = true;
  std::vector<ImageProblem> own_problems;
  ordered_parallel<Worker, SourceState>(
      images.count(), parallel_options(work), look, [&](std::size_t i, SourceState&& state) {
        is_right &= state.is_as_packed;
        if (state.image.problem == ImageProblemKind::none) return;
        own_problems.push_back({images.place(i), state.image.problem, std::move(state.image.problem_text)});
      });
  if (!is_right) return false;
  for (std::size_t i = 0; i < images.count(); ++i) work.advance();
  std::move(own_problems.begin(), own_problems.end(), std::back_inserter(problems));
  return true;
}

}  // namespace ssd
