#include "data/loader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "boxes/constants.hpp"
#include "boxes/match.hpp"
#include "core/error.hpp"
#include "image/orientation.hpp"
#include "image/resize.hpp"
#include "support/files.hpp"
#include "support/own_memory.hpp"
#include "support/tiny_set.hpp"

namespace ssd {
namespace {

using test::record_with_box;
using test::TinyRecord;
using testing::ElementsAre;
using testing::HasSubstr;

// A copy that outlives the loader, and that == compares with.
struct BatchCopy {
  std::uint32_t epoch = 0;
  std::uint64_t iteration = 0;
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> matched_box, labels;
  std::vector<float> boxes_ltrb;
  std::vector<ImageId> image_ids;
  friend bool operator==(const BatchCopy&, const BatchCopy&) = default;
};

BatchCopy copy_of(const Batch& batch) {
  return {batch.epoch,
          batch.iteration,
          {batch.images, batch.images + static_cast<std::size_t>(batch.size) * kSampleBytes},
          batch.matched_box,
          batch.labels,
          batch.boxes_ltrb,
          batch.image_ids};
}

// One sample of a batch, without the padding of its boxes.
struct SampleCopy {
  ImageId image_id;
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> matched_box;
  std::vector<float> boxes_ltrb;
  friend bool operator==(const SampleCopy&, const SampleCopy&) = default;
};

std::vector<SampleCopy> samples_of(const Batch& batch) {
  std::vector<SampleCopy> samples;
  const auto columns = static_cast<std::size_t>(batch.boxes_per_sample);
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch.size); ++i) {
    SampleCopy sample;
    sample.image_id = batch.image_ids[i];
    sample.pixels.assign(batch.images + i * kSampleBytes, batch.images + (i + 1) * kSampleBytes);
    const auto matched = batch.matched_box.begin() + static_cast<std::ptrdiff_t>(i * kDefaultBoxCount);
    sample.matched_box.assign(matched, matched + kDefaultBoxCount);
    for (std::size_t box = 0; box < columns && batch.labels[i * columns + box] != 0; ++box) {
      const auto first = batch.boxes_ltrb.begin() + static_cast<std::ptrdiff_t>((i * columns + box) * 4);
      sample.boxes_ltrb.insert(sample.boxes_ltrb.end(), first, first + 4);
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

constexpr int kRecords = 10;

class Loader : public testing::Test {
 protected:
  ShardSet write(const std::vector<TinyRecord>& records, Split split = Split::train) {
    test::write_tiny_set(folder.path(), split, records);
    return ShardSet::open(folder.path(), split);
  }

  // Ten pictures of different sizes with a box each.
  static std::vector<TinyRecord> records() {
    std::vector<TinyRecord> result;
    for (int i = 0; i < kRecords; ++i) {
      result.push_back(
          record_with_box(1000 + i, 90 + 7 * i, 120 - 5 * i, {10.0 + i, 20, 40, 30.0 + 2 * i},
                          {static_cast<std::uint8_t>(255 - 20 * i), 200, static_cast<std::uint8_t>(20 * i)}));
    }
    return result;
  }

  static TrainLoaderOptions options(int batch_size, int threads = 1, int rank = 0, int world_size = 1) {
    TrainLoaderOptions result;
    result.share = {batch_size, rank, world_size};
    result.seed = 42;
    result.pipeline.threads = threads;
    return result;
  }

  static std::vector<BatchCopy> take(const ShardSet& set, const TrainLoaderOptions& loader_options,
                                     int count) {
    TrainLoader loader(set, loader_options);
    std::vector<BatchCopy> batches;
    for (int i = 0; i < count; ++i) batches.push_back(copy_of(*loader.next()));
    return batches;
  }

  TemporaryFolder folder;
};

TEST_F(Loader, gives_the_same_bytes_for_1_and_4_threads) {
  const ShardSet set = write(records());
  EXPECT_EQ(take(set, options(4, 1), 8), take(set, options(4, 4), 8));
}

TEST_F(Loader, T4_05_memory_does_not_grow_with_the_epochs) {
  constexpr int kEpochs = 20;
  constexpr std::size_t kCount = 512, kRecordsPerShard = 4;
  std::vector<TinyRecord> many;
  for (std::size_t i = 0; i < kCount; ++i) {
    many.push_back(records()[i % kRecords]);
    many.back().record.image.id = ImageId(static_cast<std::int64_t>(i));
  }
  test::write_tiny_set(folder.path(), Split::train, many, kRecordsPerShard);
  const ShardSet set = ShardSet::open(folder.path(), Split::train);
  auto touched = options(16, 2);
  touched.pipeline.allocate = [](std::size_t bytes) {  // a batch that is needed late would count as growth
    auto block = allocate_on_heap(bytes);
    std::fill_n(block.get(), bytes, std::uint8_t{1});
    return block;
  };
  TrainLoader loader(set, touched);
  const auto run_epoch = [&] {
    for (std::uint64_t i = 0; i < loader.iterations_per_epoch(); ++i) (void)loader.next();
  };
  for (int i = 0; i < 2; ++i) run_epoch();  // buffers grow to the largest picture
  const auto before = own_memory_kib();
  for (int i = 2; i < kEpochs; ++i) run_epoch();
  // A leak of 64 bytes a sample would be more; malloc's own book-keeping moves by a few pages.
  EXPECT_LT(own_memory_kib() - before, 32 * (kEpochs - 2));
}

TEST_F(Loader, gives_the_same_samples_for_1_2_and_4_ranks) {
  const ShardSet set = write(records());
  constexpr int kGlobalBatch = 4, kIterations = 7;  // more than two epochs
  std::vector<std::vector<SampleCopy>> one_rank;
  TrainLoader whole(set, options(kGlobalBatch));
  for (int i = 0; i < kIterations; ++i) one_rank.push_back(samples_of(*whole.next()));
  for (const int world_size : {2, 4}) {
    std::vector<std::vector<SampleCopy>> all(kIterations);
    for (int rank = 0; rank < world_size; ++rank) {
      TrainLoader loader(set, options(kGlobalBatch / world_size, 2, rank, world_size));
      EXPECT_EQ(loader.iterations_per_epoch(), whole.iterations_per_epoch());
      for (auto& batch : all) {
        for (SampleCopy& sample : samples_of(*loader.next())) batch.push_back(std::move(sample));
      }
    }
    EXPECT_TRUE(all == one_rank) << world_size << " ranks";
  }
}

TEST_F(Loader, goes_on_in_mid_epoch_as_if_there_had_been_no_break) {
  const ShardSet set = write(records());
  const auto whole = take(set, options(4), 9);  // three iterations an epoch
  for (std::size_t start = 0; start < whole.size(); ++start) {
    TrainLoaderOptions from = options(4);
    from.start_epoch = static_cast<std::uint32_t>(start / 3);
    from.start_iteration = start % 3;
    const auto rest = take(set, from, static_cast<int>(whole.size() - start));
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + static_cast<std::ptrdiff_t>(start)));
  }
  TrainLoaderOptions end_of_epoch = options(4);
  end_of_epoch.start_iteration = 3;
  EXPECT_EQ(take(set, end_of_epoch, 1)[0], whole[3]);
}

TEST_F(Loader, says_to_which_epoch_and_iteration_a_batch_belongs) {
  const ShardSet set = write(records());
  const auto batches = take(set, options(4), 7);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    EXPECT_EQ(batches[i].epoch, i / 3);
    EXPECT_EQ(batches[i].iteration, i % 3);
  }
  EXPECT_NE(batches[0].image_ids, batches[3].image_ids);
}

TEST_F(Loader, changes_a_sample_from_epoch_to_epoch_and_by_seed) {
  const ShardSet set = write({records()[0]});
  const auto batches = take(set, options(1), 2);
  EXPECT_NE(batches[0].pixels, batches[1].pixels);
  TrainLoaderOptions other_seed = options(1);
  other_seed.seed = 43;
  EXPECT_NE(take(set, other_seed, 1)[0].pixels, batches[0].pixels);
}

// The box of the bright pixels, in parts.
BoxLtrb bright_box(const std::uint8_t* pixels) {
  int left = kInputSide, top = kInputSide, right = 0, bottom = 0;
  for (int y = 0; y < kInputSide; ++y) {
    for (int x = 0; x < kInputSide; ++x) {
      if (pixels[(y * kInputSide + x) * 3] < 128) continue;
      left = std::min(left, x);
      top = std::min(top, y);
      right = std::max(right, x + 1);
      bottom = std::max(bottom, y + 1);
    }
  }
  const auto part = [](int pixel) { return static_cast<float>(pixel) / kInputSide; };
  return {part(left), part(top), part(right), part(bottom)};
}

TrainLoaderOptions without_colour(TrainLoaderOptions options) {
  options.augmentation.hue_degrees = {0, 0};
  options.augmentation.saturation = options.augmentation.contrast = options.augmentation.brightness = {1, 1};
  return options;
}

TEST_F(Loader, keeps_boxes_on_what_they_mark_through_crop_flip_and_rotation) {
  // The upright picture is 200x150; stored turned, so that orientation 6 turns it back.
  std::vector<TinyRecord> set_records = {record_with_box(5, 200, 150, {50, 30, 70, 60})};
  const RgbImage upright = [&] {
    RgbImage image;
    JpegDecoder().decode(set_records[0].jpeg, image);
    return image;
  }();
  set_records.push_back(set_records[0]);
  set_records[1].record.image.id = ImageId(6);
  set_records[1].record.image.file_name = "6.jpg";
  set_records[1].record.annotations[0].annotation.image_id = ImageId(6);
  set_records[1].record.annotations[0].annotation.id = 60;
  set_records[1].record.orientation = 6;
  set_records[1].record.stored_width = 150;
  set_records[1].record.stored_height = 200;
  set_records[1].jpeg = test::encode_jpeg(apply_orientation(upright, 8));
  const ShardSet set = write(set_records);

  TrainLoader loader(set, without_colour(options(2)));
  int moved = 0;
  for (int i = 0; i < 40; ++i) {
    const auto batch = loader.next();
    ASSERT_EQ(batch->boxes_per_sample, 1);
    for (std::size_t sample = 0; sample < 2; ++sample) {
      EXPECT_EQ(batch->image_sizes[sample], (std::array<int, 2>{200, 150}));
      EXPECT_EQ(batch->labels[sample], 1);
      const BoxLtrb seen = bright_box(batch->images + sample * kSampleBytes);
      const float* box = &batch->boxes_ltrb[sample * 4];
      // The pixels are cut at whole pixels, the box at real numbers: up to one pixel of 45, the shortest
      // crop; and one pixel of 300 for the blurred edge.
      for (std::size_t k = 0; k < 4; ++k) EXPECT_NEAR(box[k], seen[k], 1.0 / 45 + 1.0 / 300);
      moved += std::abs(box[0] - 0.25F) > 0.01F;
    }
  }
  EXPECT_GT(moved, 20);
}

TEST_F(Loader, matches_the_boxes_it_gives) {
  const ShardSet set = write(records());
  TrainLoader loader(set, options(3));
  BoxMatcher matcher;
  for (int i = 0; i < 4; ++i) {
    const auto batch = loader.next();
    for (const SampleCopy& sample : samples_of(*batch)) {
      std::vector<BoxLtrb> boxes(sample.boxes_ltrb.size() / 4);
      for (std::size_t k = 0; k < sample.boxes_ltrb.size(); ++k) boxes[k / 4][k % 4] = sample.boxes_ltrb[k];
      std::vector<std::int32_t> matched(kDefaultBoxCount);
      matcher.match(boxes, matched);
      EXPECT_EQ(sample.matched_box, matched);
      EXPECT_GT(std::count(matched.begin(), matched.end(), 0), 0);
    }
  }
}

TEST_F(Loader, names_the_record_that_does_not_decode) {
  auto set_records = records();
  const char text[] = "this is no picture";
  const auto bytes = std::as_bytes(std::span(text));
  set_records[7].jpeg.assign(bytes.begin(), bytes.end());
  const ShardSet set = write(set_records);
  for (const int threads : {1, 3}) {
    TrainLoader loader(set, options(2, threads));
    const std::string message = message_of<Error>([&] {
      for (int i = 0; i < 5; ++i) (void)loader.next();
    });
    EXPECT_THAT(message, testing::AllOf(HasSubstr("shard 1"), HasSubstr("record 7"), HasSubstr("1007"),
                                        HasSubstr("1007.jpg")));
  }
}

TEST_F(Loader, names_the_record_whose_picture_has_another_size) {
  auto set_records = records();
  set_records[2].jpeg = set_records[3].jpeg;
  const ShardSet set = write(set_records);
  TrainLoader loader(set, options(kRecords));
  EXPECT_THAT(message_of<Error>([&] { (void)loader.next(); }),
              testing::AllOf(HasSubstr("1002.jpg"), HasSubstr("111x105"), HasSubstr("104x110")));
}

TEST_F(Loader, gives_the_same_samples_from_pictures_encoded_anew) {
  const auto expected = take(write(records()), options(4), 9);
  std::vector<TinyRecord> anew;
  for (const TinyRecord& record : records()) anew.push_back(test::with_restarts(record));
  EXPECT_GT(anew[0].record.restart_interval, 0U);
  TemporaryFolder other;
  test::write_tiny_set(other.path(), Split::train, anew);
  EXPECT_TRUE(take(ShardSet::open(other.path(), Split::train), options(4), 9) == expected);
}

TEST_F(Loader, gives_the_same_samples_with_any_cache_of_decoded_pictures) {
  const ShardSet set = write(records());
  const auto expected = take(set, options(4), 9);  // three epochs
  std::uint64_t all = 0;
  for (const Record& record : set.records())
    all += 3 * static_cast<std::uint64_t>(record.width) * static_cast<std::uint64_t>(record.height);
  for (const std::uint64_t bytes : {all / 3, all}) {
    for (const int threads : {1, 3}) {
      TrainLoaderOptions cached = options(4, threads);
      cached.decoded_cache_bytes = bytes;
      TrainLoader loader(set, cached);
      for (int i = 0; i < 9; ++i)
        EXPECT_TRUE(copy_of(*loader.next()) == expected[static_cast<std::size_t>(i)]);
      EXPECT_LE(loader.cache()->used_bytes(), bytes);
      EXPECT_GT(loader.cache()->used_bytes(), bytes / 2);
    }
  }
}

TEST_F(Loader, finds_every_picture_in_a_cache_that_holds_all) {
  const ShardSet set = write(records());
  TrainLoaderOptions cached = options(kRecords);
  cached.decoded_cache_bytes = 1 << 20;
  cached.pipeline.prefetch_batches = 1;
  TrainLoader loader(set, cached);
  (void)loader.next();
  (void)loader.next();  // the second epoch is under way, the first is all in the cache
  (void)loader.cache()->take_counts();
  for (int i = 0; i < 4; ++i) (void)loader.next();
  const auto counts = loader.cache()->take_counts();
  EXPECT_GE(counts.lookups, 2U * kRecords);
  EXPECT_EQ(counts.hits, counts.lookups);
  EXPECT_EQ(TrainLoader(set, options(4)).cache(), nullptr);
}

TEST_F(Loader, goes_away_in_mid_flight) {
  const ShardSet set = write(records());
  for (int round = 0; round < 10; ++round) {
    TrainLoader loader(set, options(4, 3));
    for (int i = 0; i < round % 3; ++i) (void)loader.next();
  }
}

TEST_F(Loader, T2_01_T2_04_trains_on_crowds_unless_told_not_to_and_never_on_what_has_no_size) {
  auto set_records = records();
  set_records.resize(5);
  set_records[0].record.annotations[0].annotation.is_crowd = true;
  set_records[1].record.annotations[0].is_trainable = false;
  set_records[2].record.annotations.clear();
  set_records[3].jpeg.clear();  // bad
  const ShardSet set = write(set_records);
  EXPECT_THAT(usable_records(set, CrowdBoxes::train_on), ElementsAre(0, 4));
  EXPECT_THAT(usable_records(set, CrowdBoxes::leave_out), ElementsAre(4));
  EXPECT_EQ(TrainLoader(set, options(1)).usable_record_count(), 2U);
}

TEST_F(Loader, T2_03_clips_boxes_to_the_picture) {
  auto set_records = records();
  set_records.resize(1);  // 90x120
  set_records[0].record.annotations[0].annotation.bbox_xywh = {45, -30, 90, 90};
  set_records[0].record.annotations.push_back(
      {{11, ImageId(1000), CategoryId(3), {90, 10, 5, 5}, 25, false}, 0, true});
  const ShardSet set = write(set_records);
  SampleBoxes boxes;
  training_boxes(set, set.records()[0], CrowdBoxes::train_on, boxes);
  EXPECT_EQ(boxes.ltrb, (std::vector<BoxLtrb>{{0.5F, 0, 1, 0.5F}}));
  EXPECT_THAT(boxes.labels, ElementsAre(1));
}

TEST_F(Loader, T2_19_trains_on_a_picture_of_one_pixel) {
  const ShardSet set = write({record_with_box(1, 1, 1, {0, 0, 1, 1})});
  TrainLoader loader(set, without_colour(options(1)));
  for (int i = 0; i < 20; ++i) {
    const auto batch = loader.next();
    EXPECT_EQ(batch->labels[0], 1);
    EXPECT_NEAR(batch->images[0], 255, 2);  // JPEG and the colour matrix may each take a level
  }
}

TEST_F(Loader, refuses_a_set_without_a_box_and_a_start_beyond_the_epoch) {
  auto set_records = records();
  const ShardSet set = write(set_records);
  TrainLoaderOptions beyond = options(4);
  beyond.start_iteration = 4;
  EXPECT_THAT(message_of<Error>([&] { TrainLoader(set, beyond); }), HasSubstr("an epoch has 3 iterations"));
  for (TinyRecord& record : set_records) record.record.annotations.clear();
  TemporaryFolder other;
  test::write_tiny_set(other.path(), Split::train, set_records);
  const ShardSet empty = ShardSet::open(other.path(), Split::train);
  EXPECT_THAT(message_of<Error>([&] { TrainLoader(empty, options(4)); }),
              HasSubstr("none of the 10 pictures"));
}

EvaluationLoaderOptions evaluation(int batch_size, int rank = 0, int world_size = 1) {
  EvaluationLoaderOptions result;
  result.share = {batch_size, rank, world_size};
  result.pipeline.threads = 2;
  return result;
}

TEST_F(Loader, evaluates_whole_pictures_in_set_order_with_the_tail_padded) {
  const ShardSet set = write(records(), Split::val);
  EvaluationLoader loader(set, evaluation(4));
  EXPECT_EQ(loader.batch_count(), 3U);
  std::size_t record = 0;
  Resizer resizer;
  RgbImage image;
  std::vector<std::byte> jpeg;
  std::vector<std::uint8_t> expected(kSampleBytes);
  for (std::uint64_t number = 0; number < 3; ++number) {
    const auto batch = loader.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ((*batch)->iteration, number);
    EXPECT_TRUE((*batch)->matched_box.empty());
    for (std::size_t i = 0; i < 4; ++i, ++record) {
      const std::size_t own = std::min<std::size_t>(record, kRecords - 1);
      EXPECT_EQ((*batch)->states[i], record < kRecords ? SampleState::real : SampleState::padding);
      EXPECT_EQ((*batch)->record_indices[i], own);
      EXPECT_EQ((*batch)->image_ids[i], ImageId(1000 + static_cast<std::int64_t>(own)));
      JpegDecoder().decode(set.read_jpeg(set.records()[own], jpeg), image);
      resizer.resize(view_of(image), kInputSide, kInputSide, expected.data());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), (*batch)->images + i * kSampleBytes));
    }
  }
  EXPECT_FALSE(loader.next());
}

TEST_F(Loader, evaluates_a_bad_record_as_a_black_picture_that_is_marked) {
  auto set_records = records();
  set_records.resize(3);
  set_records[1].jpeg.clear();
  const ShardSet set = write(set_records, Split::val);
  EvaluationLoader loader(set, evaluation(3));
  const auto batch = loader.next();
  EXPECT_THAT((*batch)->states, ElementsAre(SampleState::real, SampleState::bad, SampleState::real));
  const std::uint8_t* black = (*batch)->images + kSampleBytes;
  EXPECT_TRUE(std::all_of(black, black + kSampleBytes, [](std::uint8_t level) { return level == 0; }));
}

TEST_F(Loader, gives_each_evaluation_batch_to_one_rank) {
  const ShardSet set = write(records(), Split::val);
  std::vector<std::uint64_t> batches;
  for (int rank = 0; rank < 4; ++rank) {
    EvaluationLoader loader(set, evaluation(4, rank, 4));
    std::uint64_t own = 0;
    while (const auto batch = loader.next()) {
      batches.push_back((*batch)->iteration);
      ++own;
    }
    EXPECT_EQ(own, loader.batch_count());
  }
  EXPECT_THAT(batches, ElementsAre(0, 1, 2));
}

TEST_F(Loader, T2_17_evaluates_pictures_without_annotations_unless_told_not_to) {
  auto set_records = records();
  set_records.resize(3);
  set_records[0].record.annotations.clear();
  const ShardSet set = write(set_records, Split::val);
  EXPECT_EQ((*EvaluationLoader(set, evaluation(1)).next())->record_indices[0], 0U);
  EvaluationLoaderOptions with_annotations = evaluation(1);
  with_annotations.records = EvaluationRecords::with_annotations;
  EvaluationLoader loader(set, with_annotations);
  EXPECT_EQ(loader.batch_count(), 2U);
  EXPECT_EQ((*loader.next())->record_indices[0], 1U);
}

}  // namespace
}  // namespace ssd
