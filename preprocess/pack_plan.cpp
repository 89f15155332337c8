#include "preprocess/pack_plan.hpp"

#include <algorithm>
#include <numeric>

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/random.hpp"
#include "image/jpeg_transcode.hpp"
#include "preprocess/summary.hpp"
#include "record/file_names.hpp"
#include "record/shard_data.hpp"

namespace ssd {
namespace {

std::uint64_t size_or_0(std::uint64_t file_bytes) {
  return file_bytes == kNoFile ? 0 : file_bytes;
}

std::vector<std::size_t> choose_images(std::size_t count, const PackOptions& options) {
  std::vector<std::size_t> images(count);
  std::iota(images.begin(), images.end(), std::size_t{0});
  if (options.shuffle_seed) {
    RandomStream random(*options.shuffle_seed, RandomPurpose::shard_order, 0, 0);
    shuffle(std::span(images), random);
  }
  if (options.limit && *options.limit < count) images.resize(*options.limit);
  return images;
}

// As many images in a shard as fit by the sizes of their files, at least one.
std::vector<std::size_t> divide(const std::vector<std::size_t>& images,
                                const std::vector<std::uint64_t>& file_bytes, std::uint64_t shard_bytes) {
  std::vector<std::size_t> first_images;
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto bytes = size_or_0(file_bytes[images[i]]);
    if (i == 0 || filled + bytes > shard_bytes) {
      first_images.push_back(i);
      filled = 0;
    }
    filled += bytes;
  }
  first_images.push_back(images.size());
  return first_images;
}

// FORMAT.md, "Digests": what the set is made from.
std::string make_identity(const SourceSet& source, const PackPlan& plan) {
  Digester digester;
  const auto add_text = [&](std::string_view text) {
    const std::uint64_t size = text.size();
    digester.update(std::as_bytes(std::span(&size, 1)));
    digester.update(std::as_bytes(std::span(text)));
  };
  const auto add = [&](const auto& value) { digester.update(std::as_bytes(std::span(&value, 1))); };
  add(kShardFormatVersion);
  add(kTranscoderRevision);
  add_text(split_name(source.source.split));
  add_text(plan.options.text());
  for (const auto& category : source.set.categories) {
    add(category.id.value());
    add_text(category.name);
  }
  for (std::size_t i = 0; i < source.set.images.size(); ++i) {
    const auto& image = source.set.images[i];
    add(image.id.value());
    add_text(image.file_name);
    add(image.width);
    add(image.height);
    add(size_or_0(plan.file_bytes[i]));
  }
  for (const auto& annotation : source.set.annotations) {
    add(annotation.id);
    add(annotation.image_id.value());
    add(annotation.category_id.value());
    add(annotation.bbox_xywh);
    add(annotation.area);
    add(std::int32_t{annotation.is_crowd});
  }
  return digester.digest().hex();
}

}  // namespace

PackPlan make_plan(const SourceSet& source, std::vector<std::uint64_t> file_bytes,
                   const PackOptions& options) {
  PackPlan plan;
  plan.options = options;
  plan.file_bytes = std::move(file_bytes);
  plan.images = choose_images(source.set.images.size(), options);
  plan.first_images = divide(plan.images, plan.file_bytes, options.shard_bytes);
  SSD_VALIDATE(plan.shard_count() <= kMostShards,
               "{}: {} shards of {}; at most {}: give a larger --shard-size", split_name(source.source.split),
               plan.shard_count(), describe_bytes(options.shard_bytes), kMostShards);
  plan.identity = make_identity(source, plan);
  return plan;
}

}  // namespace ssd
