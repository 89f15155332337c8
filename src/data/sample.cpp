#include "data/sample.hpp"

#include <algorithm>

#include "boxes/constants.hpp"
#include "core/error.hpp"
#include "image/orientation.hpp"

namespace ssd {
namespace {

// What goes wrong while a record is at hand is said with its name.
template <class Work>
void with_name(const Record& record, std::uint32_t index, const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    throw Error(fmt::format("record {} (shard {}, image id {}, '{}'): {}; run ssd_preprocess again", index,
                            record.shard, record.image_id.value(), record.file_name, error.what()));
  }
}

const Record& describe(const ShardSet& set, Batch& batch, std::size_t sample) {
  const Record& record = set.records()[batch.record_indices[sample]];
  batch.image_ids[sample] = record.image_id;
  batch.image_sizes[sample] = {record.width, record.height};
  return record;
}

std::uint8_t* pixels_of(const Batch& batch, std::size_t sample) {
  return batch.images + sample * kSampleBytes;
}

}  // namespace

RgbView SampleMaker::picture_of(std::uint32_t index, const PixelRect& rect) {
  const Record& record = set_->records()[index];
  if (cache_ != nullptr) {
    if (const RgbImage* picture = cache_->find(index)) return crop_of(view_of(*picture), rect);
  }
  const auto jpeg = set_->read_jpeg(record, jpeg_);  // these two name the record themselves
  set_->read_restarts(record, restarts_);
  RgbView view;
  with_name(record, index, [&] {
    const PictureSize size{record.width, record.height};
    if (cache_ != nullptr && cache_->has_room(size)) {
      const RgbView whole = decode(record, jpeg, {0, 0, size.width, size.height});
      cache_->add(index, whole);
      view = crop_of(whole, rect);
    } else {
      view = decode(record, jpeg, rect);
    }
  });
  return view;
}

RgbView SampleMaker::decode(const Record& record, std::span<const std::byte> jpeg, const PixelRect& rect) {
  const PictureSize upright{record.width, record.height};
  const RgbView view =
      decoder_.decode(jpeg, {record.restart_interval, restarts_}, stored_size(upright, record.orientation),
                      stored_rect(rect, record.orientation, upright));
  return record.orientation == 1 ? view : apply_orientation(view, record.orientation, upright_);
}

void SampleMaker::make_training(Batch& batch, std::size_t sample, std::uint64_t seed, CrowdBoxes crowd,
                                const AugmentationOptions& options, SampleBoxes& boxes) {
  const Record& record = describe(*set_, batch, sample);
  training_boxes(*set_, record, crowd, boxes);
  RandomStream random(seed, RandomPurpose::augmentation, batch.epoch,
                      static_cast<std::uint64_t>(record.image_id.value()));
  const Augmentation drawn = draw_augmentation(boxes.ltrb, options, random);

  const PixelRect rect = pixel_rect(drawn.crop, record.width, record.height);
  const ColorTransform color = color_transform(drawn.color);
  resizer_.resize(picture_of(batch.record_indices[sample], rect), kInputSide, kInputSide,
                  pixels_of(batch, sample), {drawn.is_flipped, &color});
  crop_boxes(drawn.crop, boxes);
  if (drawn.is_flipped) flip_boxes(boxes);
  with_name(record, batch.record_indices[sample], [&] {
    matcher_.match(boxes.ltrb,
                   std::span(batch.matched_box).subspan(sample * kDefaultBoxCount, kDefaultBoxCount));
  });
}

void SampleMaker::make_evaluation(Batch& batch, std::size_t sample) {
  const Record& record = describe(*set_, batch, sample);
  if (record.is_bad) {
    std::fill_n(pixels_of(batch, sample), kSampleBytes, std::uint8_t{0});
    if (batch.states[sample] == SampleState::real) batch.states[sample] = SampleState::bad;
    return;
  }
  resizer_.resize(picture_of(batch.record_indices[sample], {0, 0, record.width, record.height}), kInputSide,
                  kInputSide, pixels_of(batch, sample));
}

}  // namespace ssd
