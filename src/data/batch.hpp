// One batch as the loader threads fill it and the training step takes it. Plain arrays, no torch.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/ids.hpp"

namespace ssd {

inline constexpr int kInputSide = 300;  // pixels; Liu et al. 2016, SSD300
inline constexpr std::size_t kSampleBytes = std::size_t{kInputSide} * kInputSide * 3;

// What a row of the batch stands for. Only detections of real rows count.
enum class SampleState : std::uint8_t {
  real,
  padding,  // a copy of the set's last record, to fill the last evaluation batch
  bad,      // a record packed without a picture: all pixels black
};

// A block of bytes that the batch's pixels lie in. With a GPU the owner passes pinned memory.
struct Batch {
  int size = 0;                 // samples, N
  std::uint32_t epoch = 0;      // of training, from 0; 0 in evaluation
  std::uint64_t iteration = 0;  // place in the epoch, from 0; in evaluation the batch's place in the set
  // (N, 300, 300, 3) uint8, R G B
  std::uint8_t* images = nullptr;  // not owned; kInputSide^2 * 3 * N bytes
  // Per sample and default box: place of the matched box in this sample's row of boxes, or -1 (background).
  std::vector<std::int32_t> matched_box;        // (N, 8732); empty in evaluation
  int boxes_per_sample = 0;                     // B, the longest of the batch, at least 1
  std::vector<float> boxes_ltrb;                // (N, B, 4) in [0,1], padded with zeros
  std::vector<std::int32_t> labels;             // (N, B), padded with 0
  std::vector<ImageId> image_ids;               // (N)
  std::vector<std::array<int, 2>> image_sizes;  // (N) width, height of the original picture in pixels
  std::vector<std::uint32_t> record_indices;    // (N) into ShardSet::records()
  std::vector<SampleState> states;              // (N)
};

}  // namespace ssd
