#pragma once

#include <cstdint>
#include <vector>

#include "boxes/constants.hpp"
#include "data/sample.hpp"

namespace ssd::test {

// A batch of one sample.
struct OneSample {
  std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(kSampleBytes);
  Batch batch;
  SampleBoxes boxes;

  OneSample() {
    batch.size = 1;
    batch.images = pixels.data();
    batch.record_indices.resize(1);
    batch.image_ids.resize(1);
    batch.image_sizes.resize(1);
    batch.states.resize(1);
    batch.matched_box.resize(kDefaultBoxCount);
  }
  void make(SampleMaker& maker, std::uint32_t record, std::uint32_t epoch) {
    batch.record_indices[0] = record;
    batch.epoch = epoch;
    maker.make_training(batch, 0, 1, CrowdBoxes::train_on, {}, boxes);
  }
};

}  // namespace ssd::test
