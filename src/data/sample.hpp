// Makes one sample of a batch out of a record: reads, decodes what the crop needs, turns it upright, resizes,
// flips, colours, matches. One maker for each thread: it keeps its buffers. Throws Error that names the
// record and its image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "boxes/match.hpp"
#include "data/augmentation.hpp"
#include "data/batch.hpp"
#include "data/decoded_cache.hpp"
#include "data/training_boxes.hpp"
#include "image/jpeg_crop.hpp"
#include "image/resize.hpp"
#include "record/shard_set.hpp"

namespace ssd {

class SampleMaker {
 public:
  // The set and the cache, which may be none, must outlive the maker. The samples are the same with any
  // cache.
  explicit SampleMaker(const ShardSet& set, DecodedCache* cache = nullptr) : set_(&set), cache_(cache) {}

  // Fill row `sample` of the batch from its record_indices; the boxes of a training sample go into `boxes`.
  // Randomness depends on (seed, batch.epoch, image id) alone.
  void make_training(Batch& batch, std::size_t sample, std::uint64_t seed, CrowdBoxes crowd,
                     const AugmentationOptions& options, SampleBoxes& boxes);
  // The whole picture, unchanged but for its size; black and marked bad where the record has none.
  void make_evaluation(Batch& batch, std::size_t sample);

 private:
  // A rectangle of the record's upright picture, good until the next call. Names the record where it throws.
  RgbView picture_of(std::uint32_t index, const PixelRect& rect);
  RgbView decode(const Record& record, std::span<const std::byte> jpeg, const PixelRect& rect);

  const ShardSet* set_;
  DecodedCache* cache_;
  JpegCropDecoder decoder_;
  Resizer resizer_;
  BoxMatcher matcher_;
  std::vector<std::byte> jpeg_;
  std::vector<std::uint32_t> restarts_;
  std::vector<std::uint8_t> upright_;  // pixels of pictures that are stored turned
};

}  // namespace ssd
