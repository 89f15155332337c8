#include "data/decoded_cache.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "core/error.hpp"

namespace ssd {
namespace {

// 3 x 2 pixels in rows of 12 bytes, 3 of which are not the picture's.
struct Picture {
  std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(24);
  explicit Picture(std::uint8_t first) { std::iota(pixels.begin(), pixels.end(), first); }
  RgbView view() const { return {pixels.data(), 3, 2, 12}; }
};
constexpr std::uint64_t kBytes = 3 * 2 * 3;
constexpr PictureSize kSize{3, 2};

TEST(DecodedCache, gives_the_pixels_that_were_added) {
  DecodedCache cache(2, 100);
  EXPECT_EQ(cache.find(1), nullptr);
  cache.add(1, Picture(5).view());
  const auto* found = cache.find(1);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->width, 3);
  EXPECT_EQ(found->height, 2);
  EXPECT_EQ(found->pixels, (std::vector<std::uint8_t>{5, 6, 7, 8, 9, 10, 11, 12, 13,  //
                                                      17, 18, 19, 20, 21, 22, 23, 24, 25}));
  EXPECT_EQ(cache.find(0), nullptr);
}

TEST(DecodedCache, takes_pictures_up_to_its_last_byte) {
  DecodedCache exact(2, 2 * kBytes), small(2, 2 * kBytes - 1);
  for (auto* cache : {&exact, &small}) {
    EXPECT_TRUE(cache->has_room(kSize));
    cache->add(0, Picture(1).view());
    EXPECT_EQ(cache->used_bytes(), kBytes);
  }
  EXPECT_TRUE(exact.has_room(kSize));
  EXPECT_FALSE(small.has_room(kSize));
  for (auto* cache : {&exact, &small}) cache->add(1, Picture(2).view());
  EXPECT_NE(exact.find(1), nullptr);
  EXPECT_EQ(exact.used_bytes(), 2 * kBytes);
  EXPECT_FALSE(exact.has_room({1, 1}));
  EXPECT_EQ(small.find(1), nullptr);
  EXPECT_EQ(small.used_bytes(), kBytes);  // what was not taken takes no room
  EXPECT_TRUE(small.has_room({5, 1}));
  EXPECT_FALSE(small.has_room({6, 1}));
}

TEST(DecodedCache, a_record_added_again_stays_what_it_was_and_takes_no_more_room) {
  DecodedCache cache(3, 2 * kBytes);
  cache.add(0, Picture(1).view());
  const auto* before = cache.find(0);
  cache.add(0, Picture(9).view());
  EXPECT_EQ(cache.find(0), before);
  EXPECT_EQ(before->pixels[0], 1);
  EXPECT_EQ(cache.used_bytes(), kBytes);
  cache.add(2, Picture(2).view());
  EXPECT_NE(cache.find(2), nullptr);
}

TEST(DecodedCache, threads_that_add_the_same_records_use_the_room_of_one) {
  constexpr std::uint32_t kRecords = 200;
  DecodedCache cache(kRecords, 2 * kRecords * kBytes);
  std::vector<std::jthread> threads;
  for (std::uint8_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint32_t record = 0; record < kRecords; ++record) cache.add(record, Picture(thread).view());
    });
  }
  threads.clear();
  EXPECT_EQ(cache.used_bytes(), kRecords * kBytes);
  for (std::uint32_t record = 0; record < kRecords; ++record) EXPECT_NE(cache.find(record), nullptr);
}

TEST(DecodedCache, counts_lookups_and_hits_since_the_last_time) {
  DecodedCache cache(2, 100);
  cache.add(0, Picture(1).view());
  for (const std::uint32_t record : {0U, 1U, 1U}) cache.find(record);
  auto counts = cache.take_counts();
  EXPECT_EQ(counts.lookups, 3U);
  EXPECT_EQ(counts.hits, 1U);
  cache.find(0);
  counts = cache.take_counts();
  EXPECT_EQ(counts.lookups, 1U);
  EXPECT_EQ(counts.hits, 1U);
  EXPECT_EQ(cache.take_counts().lookups, 0U);
}

TEST(DecodedCache, has_the_records_of_its_set_and_no_others) {
  DecodedCache cache(2, 100);
  EXPECT_THROW(cache.find(2), ContractError);
  EXPECT_THROW(cache.add(2, Picture(1).view()), ContractError);
  EXPECT_EQ(cache.used_bytes(), 0U);
}

}  // namespace
}  // namespace ssd
