#include "data/sample.hpp"

#include <algorithm>

#include "boxes/constants.hpp"
#include "core/error.hpp"
#include "image/color.hpp"
#include "image/orientation.hpp"

namespace ssd {
namespace {

// What goes wrong while a record is at hand is said with its name.
template <class Work>
void with_name(const Record& record, std::uint32_t index, const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    throw Error(fmt::format("record {} (shard {}, image id {}, '{}'): {}", index, record.shard,
                            record.image_id.value(), record.file_name, error.what()));
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

const RgbImage& SampleMaker::decode_upright(const Record& record) {
  decoder_.decode(jpeg_, stored_);
  const bool is_turned = record.orientation != 1;
  if (is_turned) upright_ = apply_orientation(stored_, record.orientation);
  const RgbImage& image = is_turned ? upright_ : stored_;
  SSD_VALIDATE(image.width == record.width && image.height == record.height,
               "the picture has {}x{} pixels, its record says {}x{}; run ssd_preprocess again", image.width,
               image.height, record.width, record.height);
  return image;
}

void SampleMaker::make_training(Batch& batch, std::size_t sample, std::uint64_t seed, CrowdBoxes crowd,
                                const AugmentationOptions& options, SampleBoxes& boxes) {
  const Record& record = describe(*set_, batch, sample);
  set_->read_jpeg(record, jpeg_);  // names the record itself
  with_name(record, batch.record_indices[sample], [&] {
    training_boxes(*set_, record, crowd, boxes);
    RandomStream random(seed, RandomPurpose::augmentation, batch.epoch,
                        static_cast<std::uint64_t>(record.image_id.value()));
    const Augmentation drawn = draw_augmentation(boxes.ltrb, options, random);

    const RgbView view = view_of(decode_upright(record));
    std::uint8_t* out = pixels_of(batch, sample);
    resizer_.resize(crop_of(view, pixel_rect(drawn.crop, view.width, view.height)), kInputSide, kInputSide,
                    out);
    crop_boxes(drawn.crop, boxes);
    if (drawn.is_flipped) {
      flip_horizontally(out, kInputSide, kInputSide);
      flip_boxes(boxes);
    }
    apply_color(color_transform(drawn.color), out, std::size_t{kInputSide} * kInputSide);
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
  set_->read_jpeg(record, jpeg_);
  with_name(record, batch.record_indices[sample], [&] {
    resizer_.resize(view_of(decode_upright(record)), kInputSide, kInputSide, pixels_of(batch, sample));
  });
}

}  // namespace ssd
