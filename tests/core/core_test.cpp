#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "core/atomic_file.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/random.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ssd_core_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string text_of(const fs::path& path) {
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  fs::path folder;
};

// Known answers of Philox4x32-10 from the Random123 library's kat_vectors.
TEST(Philox, gives_the_published_known_answers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, differs_by_seed_purpose_epoch_and_id_and_repeats_otherwise) {
  const auto first = [](std::uint64_t seed, RandomPurpose purpose, std::uint32_t epoch, std::uint64_t id) {
    return RandomStream(seed, purpose, epoch, id).next_u32();
  };
  using enum RandomPurpose;
  const std::set<std::uint32_t> values{first(1, test, 0, 0),
                                       first(2, test, 0, 0),
                                       first(1, augmentation, 0, 0),
                                       first(1, test, 1, 0),
                                       first(1, test, 0, 1),
                                       first(1, test, 0, 1ULL << 32),
                                       first(1 + (1ULL << 32), test, 0, 0)};
  EXPECT_EQ(values.size(), 7U);
  EXPECT_EQ(first(1, test, 3, 9), first(1, test, 3, 9));
}

// Where each number comes from: saved runs and packed sets rest on it.
TEST(RandomStream, is_philox_keyed_by_the_seed_and_counts_blocks) {
  RandomStream random(0x1122334455667788, RandomPurpose::shard_order, 0xabcdef0, 0x99aabbccddeeff00);
  for (std::uint32_t block = 0; block < 3; ++block) {
    const auto words = philox4x32_10({block, 0xddeeff00, 0x99aabbcc, 0x3abcdef0}, {0x55667788, 0x11223344});
    for (const auto word : words) EXPECT_EQ(random.next_u32(), word);
  }
  EXPECT_NO_THROW(RandomStream(1, RandomPurpose::test, (1U << 28) - 1, 0));
  EXPECT_THROW(RandomStream(1, RandomPurpose::test, 1U << 28, 0), ContractError);
}

TEST(RandomStream, uniform_takes_53_bits_of_two_words) {
  RandomStream words(7, RandomPurpose::test, 0, 0), random(7, RandomPurpose::test, 0, 0);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t high = words.next_u32() >> 5, low = words.next_u32() >> 6;
    const auto expected = static_cast<double>(high << 26 | low) / 9007199254740992.0;
    EXPECT_EQ(i % 2 == 0 ? random.uniform() : random.uniform(-2, 6),
              i % 2 == 0 ? expected : -2 + 8 * expected);
  }
}

// A bound at which a quarter of all words has to be rejected: without that every third number comes up
// twice as often as the others.
TEST(RandomStream, below_is_fair_where_it_rejects_much) {
  RandomStream random(7, RandomPurpose::test, 0, 0), words(7, RandomPurpose::test, 0, 0);
  std::vector<int> counts(3);
  constexpr std::uint32_t kBound = 3U << 30;
  for (int i = 0; i < 30000; ++i) {
    const auto number = random.below(kBound);
    ASSERT_LT(number, kBound);
    ++counts[number % 3];
    // 3 of 4 words are taken: those whose product's lower half is not below 2^32 mod the bound, 2^30.
    std::uint64_t product = 0;
    do product = std::uint64_t{words.next_u32()} * kBound;
    while ((product & 0xffffffff) < (1U << 30));
    ASSERT_EQ(number, product >> 32);
  }
  // 10,000 expected of each, standard deviation 82: five of them.
  for (const int count : counts) EXPECT_NEAR(count, 10000, 5 * 82);
  EXPECT_EQ(random.below(1), 0U);
  EXPECT_THROW(random.below(0), ContractError);
}

TEST(RandomStream, below_is_fair_and_uniform_stays_inside) {
  RandomStream random(7, RandomPurpose::test, 0, 0);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[random.below(7)];
  // 10,000 expected in each bin, standard deviation 93: five of them.
  for (const int count : counts) EXPECT_NEAR(count, 10000, 5 * 93);
  for (int i = 0; i < 1000; ++i) {
    const double value = random.uniform(.3, 1);
    EXPECT_GE(value, .3);
    EXPECT_LT(value, 1);
  }
}

TEST(RandomStream, shuffle_keeps_every_element) {
  std::vector<int> values(1000);
  std::iota(values.begin(), values.end(), 0);
  RandomStream random(7, RandomPurpose::epoch_order, 0, 0);
  shuffle(std::span(values), random);
  EXPECT_FALSE(std::is_sorted(values.begin(), values.end()));
  std::sort(values.begin(), values.end());
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], i);
}

TEST(RandomStream, shuffle_gives_every_order_alike) {
  RandomStream random(7, RandomPurpose::epoch_order, 0, 0);
  std::map<std::array<int, 3>, int> counts;
  for (int i = 0; i < 6000; ++i) {
    std::array<int, 3> values{0, 1, 2};
    shuffle(std::span<int>(values), random);
    ++counts[values];
  }
  ASSERT_EQ(counts.size(), 6U);
  // 1,000 expected of each, standard deviation 29: five of them.
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 5 * 29);
}

TEST(Digest, crc32_and_xxh3_give_the_published_check_values) {
  const std::string_view text = "123456789";
  EXPECT_EQ(crc32(std::as_bytes(std::span(text))), 0xCBF43926U);
  EXPECT_EQ(
      crc32(std::as_bytes(std::span(text.substr(4))), crc32(std::as_bytes(std::span(text.substr(0, 4))))),
      0xCBF43926U);
  // XXH3-128 of nothing with seed 0, from the xxHash specification.
  EXPECT_EQ(digest_of({}).hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_NE((Digest{1, 2}), (Digest{1, 3}));
  EXPECT_NE((Digest{1, 2}), (Digest{3, 2}));
  Digester pieces;
  pieces.update(std::as_bytes(std::span(text.substr(0, 4))));
  pieces.update(std::as_bytes(std::span(text.substr(4))));
  EXPECT_EQ(pieces.digest(), digest_of(std::as_bytes(std::span(text))));
}

using AtomicFileTest = TemporaryFolder;

TEST_F(AtomicFileTest, appears_at_commit_and_not_before) {
  const auto path = folder / "a.txt";
  {
    AtomicFile file(path);
    file.write(std::as_bytes(std::span("new", 3)));
    EXPECT_FALSE(fs::exists(path));
    file.commit();
  }
  EXPECT_EQ(text_of(path), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST_F(AtomicFileTest, abandoned_leaves_the_old_file_and_no_temporary) {
  const auto path = folder / "a.txt";
  write_file_atomically(path, "old");
  {
    AtomicFile file(path);
    file.write(std::as_bytes(std::span("new", 3)));
  }
  EXPECT_EQ(text_of(path), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST_F(AtomicFileTest, a_missing_folder_is_named_with_the_reason) {
  try {
    write_file_atomically(folder / "none" / "a.txt", "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("none/.a.txt.tmp."));
    EXPECT_THAT(error.what(), testing::EndsWith(": No such file or directory"));
  }
}

TEST_F(AtomicFileTest, temporary_names_are_recognised_and_others_are_not) {
  EXPECT_TRUE(is_temporary_name(temporary_path_for(folder / "epoch_1.pt").filename().string()));
  EXPECT_FALSE(is_temporary_name("epoch_1.pt"));
  EXPECT_FALSE(is_temporary_name("a.tmp.b"));
}

TEST(Checks, carry_the_message_and_the_family) {
  EXPECT_THROW(SSD_VALIDATE(false, "value {}", 3), Error);
  EXPECT_THROW(SSD_EXPECT(1 == 2), ContractError);
  EXPECT_NO_THROW(SSD_VALIDATE(true, "never"));
  static_assert(!std::is_convertible_v<ImageId, CategoryId>);
}

}  // namespace
}  // namespace ssd
